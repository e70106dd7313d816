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

/** A value among all as a step from 0 to 9; 0 is nothing. */
export function level(value: number, most: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.min(9, Math.max(1, Math.ceil((value / most) * 9)));
}
