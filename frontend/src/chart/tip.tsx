// What the cursor points at: the interval, and the value of each line in it.
import type { Mark } from "../api/types";
import { momentOf, intervalOf, type Clock } from "../lib/time";
import { value } from "../lib/units";
import { T } from "../parts/text";
import type { Expected } from "./chart";
import { valueAt, type Line } from "./lines";
import { within } from "./describe";
import { Swatch } from "./swatch";

export interface Pointed {
  moment: number;
  /** Pixels within the plotting area, and its width. */
  left: number;
  width: number;
}

interface Props {
  pointed: Pointed;
  lines: readonly Line[];
  places: readonly number[];
  hidden: readonly string[];
  precision: number;
  clock: Clock;
  marks: readonly Mark[];
  expectedRange: readonly Expected[];
}

/** Most lines that are listed. */
const MOST = 12;

export function Tip({ pointed, lines, places, hidden, precision, clock, marks, expectedRange }: Props) {
  const { moment, left, width } = pointed;
  const shown = lines.flatMap((line, i) =>
    hidden.includes(line.key) ? [] : [{ line, place: places[i] ?? i }],
  );
  const expected = expectedRange.find((each) => each.start === moment);
  const here = within(marks, moment, precision);
  const unit = lines[0]?.unit ?? "";
  const right = left > width / 2;
  return (
    <div
      class={right ? "tip left" : "tip right"}
      style={{ "--at": `${Math.round(left)}px` }}
      aria-hidden="true"
    >
      <p class="tip-time">{intervalOf(moment, precision, clock)}</p>
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
      {expected && (
        <p>
          <span class="tip-name">expected</span>
          <b>
            {value(expected.low, unit)} – {value(expected.high, unit)}
          </b>
        </p>
      )}
      {here.map((mark) => (
        <p key={mark.time} class="tip-mark">
          <T text={mark.label} /> <span class="faint">{momentOf(mark.time, clock)}</span>
        </p>
      ))}
    </div>
  );
}
