// A number compared with the window before: its change, and whether that is good.

export type Meaning = "lower-is-better" | "neutral";

export interface Change {
  /** Relative change, 0.5 for half more; null if it is unknown. */
  by: number | null;
  text: string;
  tone: "good" | "bad" | "neutral";
  direction: "up" | "down" | "none";
}

/** Relative changes below this are not shown. */
const LEAST = 0.005;

const STILL = { tone: "neutral", direction: "none" } as const;

/** Number of events, now and in as much time before. */
export type Counts = readonly [now: number, before: number];

/** Without counts: the least relative change that is good or bad. */
const MUCH = 0.25;

/** Whether counts differ by more than three standard deviations of independent events. */
export function beyondChance([now, before]: Counts): boolean {
  return Math.abs(now - before) > 3 * Math.sqrt(now + before + 1);
}

/** `counts`: the events behind both values, which decide whether a change is more than chance. */
export function change(
  value: number | null,
  before: number | null,
  meaning: Meaning,
  counts: Counts | null = null,
): Change {
  if (value === null || before === null) return { by: null, text: "no earlier data", ...STILL };
  if (value === before) return { by: 0, text: "unchanged", ...STILL };
  const direction = value > before ? "up" : "down";
  const by = before === 0 ? null : (value - before) / Math.abs(before);
  const real = counts ? beyondChance(counts) : by === null || Math.abs(by) >= MUCH;
  const tone = meaning === "neutral" || !real ? "neutral" : direction === "up" ? "bad" : "good";
  if (by === null) return { by, text: "was 0", tone, direction };
  if (Math.abs(by) < LEAST) return { by, text: "unchanged", ...STILL };
  return { by, text: parts(by), tone, direction };
}

/** "+12 %", "-40 %"; from tenfold on "x 12". */
function parts(by: number): string {
  if (by >= 9) return `× ${Math.round(by + 1).toLocaleString("en")}`;
  const value = Math.abs(by) * 100;
  return `${by > 0 ? "+" : "−"}${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}
