// The compared line of a chart: the same series, yesterday or before the window.
import type { Span } from "../api/types";
import type { Line } from "../chart/lines";
import { referenceOf } from "../lib/frame";
import { durationLabel } from "../lib/ranges";

interface Chosen {
  since: number | null;
  against: string;
}

interface Reference {
  line: Line | null;
  /** The reason why it is missing or incomplete. */
  note: string;
}

/** Only values of the same precision are compared; if these are not kept, the answer has a reason. */
export function referenceLine(
  line: Line | undefined,
  window: Pick<Span, "start" | "end" | "shift">,
  chosen: Chosen,
): Reference {
  if (!line || (chosen.since === null && chosen.against === "")) return { line: null, note: "" };
  const { start: from, end: to } = window;
  const shift = window.shift ?? Math.ceil((to - from) / line.precision) * line.precision;
  const name = referenceOf(chosen.against, to - from);
  const start = line.start + shift;
  const reaches = durationLabel(Math.max(1, line.values.length) * line.precision);
  const kept = `${line.label}, ${name}: not kept by ${durationLabel(line.precision)}, which reaches back ${reaches}.`;
  if (start >= to || line.values.length === 0) return { line: null, note: kept };
  const values = line.values.slice(0, Math.ceil((to - start) / line.precision));
  return {
    line: { ...line, key: ":reference", label: `${line.label}, ${name}`, start, values, partial: false },
    note: start > from ? `Only a part is there. ${kept}` : "",
  };
}
