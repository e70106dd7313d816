// The labels of marks, in a lane above the plot. The newest has its place; an older one for which there
// is no room is counted at the label that is in its way: "shop 2.9 +2".

export interface Place {
  /** Which of the marks. */
  index: number;
  /** Left edge and width. */
  from: number;
  width: number;
  /** How many older ones have no label of their own. */
  more: number;
}

/** `at` and `widths`: of each mark, the oldest first; `more`: how wide "+2" is; all in one unit. */
export function lane(
  at: readonly number[],
  widths: readonly number[],
  left: number,
  right: number,
  more: number,
): Place[] {
  const placed: Place[] = [];
  let limit = right;
  for (let index = at.length - 1; index >= 0; index--) {
    const width = Math.min(widths[index] ?? 0, right - left);
    const from = Math.min(at[index] ?? 0, limit - width);
    const last = placed.at(-1);
    // A label may move left of its mark, but not away from it.
    const fits = from >= left && (!last || (at[index] ?? 0) - from < width);
    if (last && (!fits || from + width > last.from - 3)) {
      if (last.more === 0) {
        const edge = placed.length > 1 ? (placed.at(-2)?.from ?? right) - 3 : right;
        last.width = Math.min(last.width + more, edge - left);
        last.from = Math.max(left, Math.min(last.from, edge - last.width));
      }
      last.more += 1;
    } else placed.push({ index, from: Math.max(left, from), width, more: 0 });
    limit = (placed.at(-1)?.from ?? right) - 3;
  }
  return placed;
}
