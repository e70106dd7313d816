// Hourly samples as days and hours of the page's time zone, for the matrix.
import type { Series } from "../api/types";
import type { Clock } from "../lib/time";

export interface Day {
  /** Midnight, Unix seconds. */
  start: number;
  /** One value per hour; undefined: not kept, or in the future. null: a gap. */
  hours: (number | null | undefined)[];
}

const HOUR = 3600;

/** Midnight of the day of a moment, Unix seconds, and the hour of the day. */
export function placeIn(at: number, clock: Clock): [number, number] {
  const date = new Date(at * 1000);
  if (clock === "utc") return [date.setUTCHours(0, 0, 0, 0) / 1000, new Date(at * 1000).getUTCHours()];
  const hour = date.getHours();
  return [date.setHours(0, 0, 0, 0) / 1000, hour];
}

/** Group samples by day, the newest day first. The hour that comes twice when clocks go back has the sum of
 * a counter, and the later value of others. */
export function days(series: Series, clock: Clock): Day[] {
  const byStart = new Map<number, Day>();
  series.values.forEach((value, i) => {
    const [start, hour] = placeIn(series.start + i * HOUR, clock);
    let day = byStart.get(start);
    if (!day) {
      day = { start, hours: new Array<undefined>(24).fill(undefined) };
      byStart.set(start, day);
    }
    const before = series.kind === "counter" ? (day.hours[hour] ?? 0) : 0;
    day.hours[hour] = value === null ? (day.hours[hour] ?? null) : value + before;
  });
  return [...byStart.values()].sort((a, b) => b.start - a.start);
}

/** The ends of the color scale, from the complete hours; null without any. A counter's zero has a color of its
 * own, outside the scale. */
export function extent(series: Series): [number, number] | null {
  const ended = series.partial ? series.values.slice(0, -1) : series.values;
  const known = ended.filter(
    (each) => each !== null && (each !== 0 || series.kind !== "counter"),
  ) as number[];
  if (known.length === 0) return null;
  known.sort((a, b) => a - b);
  // An outlier would leave all others the same color, so the highest 2 % are above the scale.
  const most = known[Math.ceil(known.length * SCALED) - 1] ?? 0;
  return [known[0] ?? 0, most];
}

/** The share of hours that the color scale covers; higher values have its last color. */
const SCALED = 0.98;

/** Number of color steps. */
export const LEVELS = 9;

/** Map a value between the minimum and the maximum to a step from 1 to 9. */
export function level(value: number, least: number, most: number): number {
  if (!(most > least)) return Math.ceil(LEVELS / 2);
  const part = (value - least) / (most - least);
  return Math.min(LEVELS, Math.max(1, Math.ceil(part * LEVELS)));
}
