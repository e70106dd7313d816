// Where the y axis of shares ends. It follows the values, so that a rise from 0.02 % to 0.13 % is seen,
// but never shows less than distinct ticks need: percent() writes no digit beyond 0.01 %.

/** The least end of the axis, and its end where all values are zero. */
const LEAST = 0.0005;
const NOTHING = 0.01;

/** The end of an axis of shares, 0 to 1, whose highest value this is. */
export function topOfShares(highest: number): number {
  return highest > 0 ? Math.min(1, Math.max(highest * 1.25, LEAST)) : NOTHING;
}
