// A number against the window before: how far it moved, and whether that is good.

export type Meaning = "lower-is-better" | "neutral";

export interface Change {
  /** Part by which it moved, 0.5 for half more; none where that cannot be said. */
  by: number | null;
  text: string;
  tone: "good" | "bad" | "neutral";
  direction: "up" | "down" | "none";
}

/** Below this part nothing has changed worth saying. */
const LEAST = 0.005;

const STILL = { tone: "neutral", direction: "none" } as const;

export function change(value: number | null, before: number | null, meaning: Meaning): Change {
  if (value === null || before === null) return { by: null, text: "nothing to compare", ...STILL };
  if (value === before) return { by: 0, text: "unchanged", ...STILL };
  const direction = value > before ? "up" : "down";
  const tone = meaning === "neutral" ? "neutral" : direction === "up" ? "bad" : "good";
  if (before === 0) return { by: null, text: "from 0", tone, direction };
  const by = (value - before) / Math.abs(before);
  if (Math.abs(by) < LEAST) return { by, text: "unchanged", ...STILL };
  return { by, text: parts(by), tone, direction };
}

/** "+12 %", "-40 %"; from tenfold on "x 12". */
function parts(by: number): string {
  if (by >= 9) return `× ${Math.round(by + 1).toLocaleString("en")}`;
  const value = Math.abs(by) * 100;
  return `${by > 0 ? "+" : "−"}${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}
