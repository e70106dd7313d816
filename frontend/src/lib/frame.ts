// The window that the page shows: its moves, its compared period and its precision.
import type { Span } from "../api/types";
import { durationLabel, type Range } from "./ranges";
import { minuteOf, type Clock } from "./time";

export interface Period {
  from: number;
  to: number;
}

/** The window half its width earlier (-1) or later (1). */
export function stepped({ from, to }: Period, by: -1 | 1): Period {
  const half = Math.max(1, Math.round((to - from) / 2));
  return { from: Math.max(0, from + by * half), to: Math.max(2, to + by * half) };
}

/** Lengths of windows up to now, seconds, other than those that a precision keeps. */
const PRESETS = [3600, 86_400, 604_800];

export interface Preset {
  precision: number;
  /** null: all that the precision keeps. */
  last: number | null;
  span: number;
  label: string;
  step: string;
}

/** The windows up to now that are offered, the shortest first. */
export function presets(all: readonly Range[]): Preset[] {
  const more = PRESETS.flatMap((span) => {
    const range = all.find((each) => each.span >= span && span % each.precision === 0);
    return range && all.every((each) => each.span !== span)
      ? [{ ...range, last: span, span, label: span === 86_400 ? "24 h" : durationLabel(span) }]
      : [];
  });
  return [...all.map((each) => ({ ...each, last: null })), ...more].sort((a, b) => a.span - b.span);
}

/** The samples of a precision that a comparison with another day needs; 0 if they are kept. The window and the
 * compared period have the same edges or none: see reading/windows.py. */
export function lacking(
  all: readonly Range[],
  { from, to }: Period,
  precision: number,
  now: number,
  shift: number,
) {
  const [length, ends] = [to - from, to <= now];
  const back = Math.max(0, now - to) + length + shift;
  const fits = ({ precision: width }: { precision: number }) =>
    ends ? length % width === 0 && (to - shift) % width === 0 : width === precision && shift % width === 0;
  const able = all.filter((each) => each.precision >= precision && fits(each));
  if (able.some((each) => (each.samples - 1) * each.precision >= back)) return null;
  return { precision, samples: Math.ceil(back / precision) + 1 };
}

/** Twice as wide, around the same middle. */
export function widened({ from, to }: Period): Period {
  const half = Math.max(1, Math.round((to - from) / 2));
  return { from: Math.max(0, from - half), to: to + half };
}

/** Seconds from another day to this one, without changes of the clock. */
export const SHIFTS = { yesterday: 86_400, "last-week": 604_800 };

/** The compared period of an answer: in words where it is exactly that, else with its times. `seconds`: that of
 * the histograms. */
export function comparedText(window: Span, against: string, clock: Clock, seconds = false): string {
  const [start, from, to] = seconds
    ? [window.histograms_start, window.histograms_before_start, window.histograms_before_end]
    : [window.start, window.before_start, window.before_end];
  const words = referenceOf(against, window.end - window.start);
  if (from === null || to === null) return words;
  const length = seconds ? window.histograms_end - start : window.end - start;
  const exact = to - from === window.end - window.start && start - from === (window.shift ?? length);
  return exact
    ? words
    : `${minuteOf(from, clock)} to ${minuteOf(to, clock)}${window.shift ? `, ${words}` : ""}`;
}

/** The compared period in words. */
export function referenceOf(against: string, length: number): string {
  if (against === "yesterday") return "yesterday";
  return against === "last-week" ? "last week" : `the ${durationLabel(length)} before`;
}
