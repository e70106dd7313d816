// The ranges of the page are the precisions that the store keeps: "2 h by 1 min" is 120 samples of a
// minute each. The precision determines how often a range is requested.

export interface Range {
  /** Width of an interval, seconds. */
  precision: number;
  samples: number;
  /** Total duration, seconds. */
  span: number;
  /** "2 h", and "1 min". */
  label: string;
  step: string;
}

const STEPS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

/** A duration in the largest unit that fits it in whole or in one decimal: "2 h", "1.5 d". */
export function durationLabel(seconds: number): string {
  for (const [step, unit] of STEPS) {
    if (seconds >= step && seconds % step === 0) return `${seconds / step} ${unit}`;
  }
  for (const [step, unit] of STEPS) {
    if (seconds >= step) return `${Number((seconds / step).toFixed(1))} ${unit}`;
  }
  return `${seconds} s`;
}

/** All ranges of a retention (precision -> samples), the finest first. */
export function ranges(retention: Record<string, number>): Range[] {
  return Object.entries(retention)
    .map(([key, samples]) => ({ precision: Number(key), samples }))
    .filter(({ precision, samples }) => precision > 0 && samples > 0)
    .sort((a, b) => a.precision - b.precision)
    .map(({ precision, samples }) => {
      const span = precision * samples;
      return { precision, samples, span, label: durationLabel(span), step: durationLabel(precision) };
    });
}

/** The time from `start` to the end of the running interval: "5 d". */
export function coverage(start: number, precision: number, now: number): string {
  return durationLabel(Math.max(1, Math.floor((now - start) / precision) + 1) * precision);
}

/** Milliseconds between two requests. At a precision of a second a little less than one second, so that
 * samples flushed once a second are on the page within two. */
export function pollEvery(precision: number): number {
  return precision <= 1 ? 750 : Math.min(10_000, Math.max(1000, (precision / 6) * 1000));
}

/** The finest range that still contains `since`; undefined if all ranges are shorter. */
export function finest(all: Range[], since: number, now: number): Range | undefined {
  return all.find((range) => since >= now - range.span);
}

/** The range nearest to a precision, for URLs with a precision that the store does not keep. */
export function nearest(all: Range[], precision: number): Range | undefined {
  let best = all[0];
  for (const range of all) {
    if (
      best &&
      Math.abs(Math.log(range.precision / precision)) < Math.abs(Math.log(best.precision / precision))
    )
      best = range;
  }
  return best;
}
