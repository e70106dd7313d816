// The tooltip: the interval at the cursor, and the value of each line in it. A group of charts shares one.
import type { Mark } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { momentOf, intervalOf, type Clock } from "../lib/time";
import { percent, value } from "../lib/units";
import { T } from "../parts/text";
import { valueAt, type Expected, type Line } from "./lines";
import { within } from "./describe";
import { Swatch } from "./swatch";

interface Props {
  moment: number;
  lines: readonly Line[];
  places: readonly number[];
  hidden: readonly string[];
  precision: number;
  clock: Clock;
  marks: readonly Mark[];
  expectedRange: readonly Expected[];
}

/** Maximum number of lines. */
const MOST = 12;

/** "+31 % over expected", "as expected". */
export function deviation(at: number | null, { low, mid, high }: Expected): string {
  if (at === null || (at >= low && at <= high)) return "as expected";
  if (mid === 0) return "over expected";
  const by = (at - mid) / Math.abs(mid);
  return `${by > 0 ? "+" : "−"}${percent(Math.abs(by))} ${by > 0 ? "over" : "below"} expected`;
}

export function Tip({ moment, lines, places, hidden, precision, clock, marks, expectedRange }: Props) {
  const shown = lines.flatMap((line, i) =>
    hidden.includes(line.key) ? [] : [{ line, place: places[i] ?? i }],
  );
  const first = lines[0];
  const expected = expectedRange.find((each) => each.start === moment);
  const end = intervalOf(moment + precision, precision, clock);
  return (
    <div class="tip" aria-hidden="true">
      <p class="tip-time">
        {intervalOf(moment, precision, clock)}
        {precision < 86_400 ? ` to ${end}` : ""} <span class="faint">{durationLabel(precision)}</span>
      </p>
      {shown.slice(0, MOST).map(({ line, place }) => (
        <p key={line.key}>
          <Swatch place={place} />{" "}
          <span class="tip-name">
            <T text={line.label} />
          </span>
          <b>{value(valueAt(line, moment), line.unit)}</b>
        </p>
      ))}
      {shown.length > MOST && <p class="faint">… {shown.length - MOST} more</p>}
      {expected && first && (
        <p>
          <span class="tip-name">{deviation(valueAt(first, moment), expected)}</span>
          <b>
            {value(expected.low, first.unit)} – {value(expected.high, first.unit)}
          </b>
        </p>
      )}
      {within(marks, moment, precision).map((mark) => (
        <p key={mark.time} class="tip-mark">
          <T text={mark.label} /> <span class="faint">{momentOf(mark.time, clock)}</span>
        </p>
      ))}
    </div>
  );
}
