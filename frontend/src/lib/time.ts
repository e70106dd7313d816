// Moments as text, in local time or UTC, and how long ago they were. Unix seconds everywhere.

export type Clock = "local" | "utc";

const formats = new Map<string, Intl.DateTimeFormat>();

function written(at: number, clock: Clock, options: Intl.DateTimeFormatOptions): string {
  const key = clock + JSON.stringify(options);
  let format = formats.get(key);
  if (!format) {
    const zone = clock === "utc" ? { timeZone: "UTC" } : {};
    format = new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", ...zone, ...options });
    formats.set(key, format);
  }
  return format.format(at * 1000);
}

const TWO = "2-digit" as const;

/** 12:03:09 */
export const timeOf = (at: number, clock: Clock) =>
  written(at, clock, { hour: TWO, minute: TWO, second: TWO });

/** 12:03 */
export const minuteOf = (at: number, clock: Clock) => written(at, clock, { hour: TWO, minute: TWO });

/** The value of a date field, to the minute: "2026-11-21T12:03", and the moment that it means, if any. */
export function fieldOf(at: number, clock: Clock): string {
  const shift = clock === "utc" ? 0 : new Date(at * 1000).getTimezoneOffset() * 60;
  return new Date((at - shift) * 1000).toISOString().slice(0, 16);
}

export function momentOfField(text: string, clock: Clock): number | null {
  const at = new Date(clock === "utc" ? `${text}Z` : text).getTime() / 1000;
  return Number.isFinite(at) && at >= 0 ? at : null;
}

/** 21 Nov */
export const dayOf = (at: number, clock: Clock) => written(at, clock, { day: "numeric", month: "short" });

/** Sat 21 Nov */
export const weekdayOf = (at: number, clock: Clock) =>
  written(at, clock, { weekday: "short", day: "numeric", month: "short" });

/** 21 Nov 2026, 12:03:09 */
export const momentOf = (at: number, clock: Clock) =>
  written(at, clock, {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: TWO,
    minute: TWO,
    second: TWO,
  });

/** The start of an interval, as exactly as its precision needs. Intervals of a day are days of UTC. */
export function intervalOf(at: number, precision: number, clock: Clock): string {
  if (precision >= 86_400) return weekdayOf(at, "utc");
  if (precision >= 3600) return `${dayOf(at, clock)}, ${minuteOf(at, clock)}`;
  if (precision >= 60) return minuteOf(at, clock);
  return timeOf(at, clock);
}

/** The text of a tick on a time axis, whose ticks are `step` seconds apart. */
export function tickOf(at: number, step: number, precision: number, clock: Clock): string {
  if (step >= 86_400 || precision >= 86_400) return dayOf(at, precision >= 86_400 ? "utc" : clock);
  const minute = minuteOf(at, clock);
  if (minute === "00:00" && step >= 60) return dayOf(at, clock);
  return step >= 60 ? minute : timeOf(at, clock);
}

/** "3 s ago", "5 min ago"; "now" within the second, and "in 5 s" where clocks differ. */
export function ago(at: number, now: number): string {
  const past = now - at;
  const size = Math.abs(past);
  if (size < 1) return "now";
  const [step, unit] =
    size < 120 ? [1, "s"] : size < 7200 ? [60, "min"] : size < 172_800 ? [3600, "h"] : [86_400, "d"];
  const text = `${Math.floor(size / step)} ${unit}`;
  return past > 0 ? `${text} ago` : `in ${text}`;
}
