// The samples of an hour each as days and hours of UTC, for the matrix.
import type { Series } from "../api/types";

export interface Day {
  /** Midnight UTC, Unix seconds. */
  start: number;
  /** Of each hour; undefined: not kept, or still to come. null: a gap. */
  hours: (number | null | undefined)[];
}

const DAY = 86_400;
const HOUR = 3600;

/** The newest day first. */
export function days(series: Series): Day[] {
  const found = new Map<number, Day>();
  series.values.forEach((value, i) => {
    const at = series.start + i * HOUR;
    const start = Math.floor(at / DAY) * DAY;
    let day = found.get(start);
    if (!day) {
      day = { start, hours: new Array<undefined>(24).fill(undefined) };
      found.set(start, day);
    }
    day.hours[Math.floor((at - start) / HOUR)] = value;
  });
  return [...found.values()].sort((a, b) => b.start - a.start);
}

/** The ends of the scale of colors, of the hours that have ended; none where there are none. A counter's zero is
 * nothing, which has a colour of its own. */
export function extent(series: Series): [number, number] | null {
  const ended = series.partial ? series.values.slice(0, -1) : series.values;
  const known = ended.filter(
    (each) => each !== null && (each !== 0 || series.kind !== "counter"),
  ) as number[];
  if (known.length === 0) return null;
  known.sort((a, b) => a - b);
  // One outlier would take the color from all others: the scale ends where all but one in fifty are.
  const most = known[Math.ceil(known.length * SCALED) - 1] ?? 0;
  return [known[0] ?? 0, most];
}

/** The part of the hours that the scale of colors covers; higher values have its last color. */
const SCALED = 0.98;

/** How many steps of colour there are. */
export const LEVELS = 9;

/** A value between the least and the most as a step from 1 to 9. */
export function level(value: number, least: number, most: number): number {
  if (!(most > least)) return Math.ceil(LEVELS / 2);
  const part = (value - least) / (most - least);
  return Math.min(LEVELS, Math.max(1, Math.ceil(part * LEVELS)));
}
