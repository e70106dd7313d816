// Describes the values at the cursor in a sentence, for screen readers.
import type { Mark } from "../api/types";
import { intervalOf, type Clock } from "../lib/time";
import { plain } from "../lib/text";
import { value } from "../lib/units";
import { valueAt, type Expected, type Line } from "./lines";

/** Maximum number of lines. */
const MOST = 8;

export function describe(
  moment: number,
  lines: readonly Line[],
  precision: number,
  clock: Clock,
  marks: readonly Mark[],
  expectedRange: readonly Expected[],
): string {
  const parts = lines.slice(0, MOST).map((line) => {
    const last = line.start + (line.values.length - 1) * line.precision;
    const running = line.partial && moment >= last && moment < last + line.precision ? " so far" : "";
    const at = valueAt(line, moment);
    return `${plain(line.label, 60)} ${at === null ? "nothing measured" : value(at, line.unit) + running}`;
  });
  if (lines.length > MOST) parts.push(`${lines.length - MOST} more`);
  const expected = expectedRange.find((each) => each.start === moment);
  const unit = lines[0]?.unit ?? "";
  if (expected) parts.push(`expected ${value(expected.low, unit)} to ${value(expected.high, unit)}`);
  for (const mark of within(marks, moment, precision)) parts.push(`mark ${plain(mark.label, 60)}`);
  return `${intervalOf(moment, precision, clock)}: ${parts.join(", ")}`;
}

/** Marks of an interval. */
export function within(marks: readonly Mark[], start: number, precision: number): Mark[] {
  return marks.filter((mark) => mark.time >= start && mark.time < start + precision);
}
