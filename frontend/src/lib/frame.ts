// The window that the page shows: its moves, its compared period and its precision.
import { durationLabel, type Range } from "./ranges";

export interface Period {
  from: number;
  to: number;
}

/** The window half its width earlier (-1) or later (1). */
export function stepped({ from, to }: Period, by: -1 | 1): Period {
  const half = Math.max(1, Math.round((to - from) / 2));
  return { from: Math.max(0, from + by * half), to: Math.max(2, to + by * half) };
}

/** Twice as wide, around the same middle. */
export function widened({ from, to }: Period): Period {
  const half = Math.max(1, Math.round((to - from) / 2));
  return { from: Math.max(0, from - half), to: to + half };
}

/** The range that shows a window: the chosen one, or the next one with sufficient retention. */
export function reaching(all: readonly Range[], wanted: number, since: number, now: number) {
  const able = all.filter((each) => each.precision >= wanted && since >= now - each.span + each.precision);
  return able[0] ?? all.at(-1);
}

/** The compared period in words. */
export function referenceOf(against: string, length: number): string {
  if (against === "yesterday") return "yesterday";
  return against === "last-week" ? "last week" : `the ${durationLabel(length)} before`;
}
