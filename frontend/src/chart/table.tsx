// A chart's values as tables, the newest first: one table per precision.
import type { Mark } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { intervalOf, type Clock } from "../lib/time";
import { value } from "../lib/units";
import { T } from "../parts/text";
import { columns, touches, valueAt, type Line } from "./lines";
import { within } from "./describe";

interface Props {
  title: string;
  lines: readonly Line[];
  from: number;
  to: number;
  marks: readonly Mark[];
  clock: Clock;
}

/** Maximum number of rows. */
const MOST = 500;

export function DataTable(props: Props) {
  const { title, lines } = props;
  const widths = [...new Set(lines.map((line) => line.precision))];
  return (
    <div class="scroll tall" role="region" aria-label={`Values of ${title}`} tabIndex={0}>
      {widths.map((width) => (
        <IntervalTable
          key={width}
          {...props}
          precision={width}
          alone={widths.length === 1}
          lines={lines.filter((line) => line.precision === width)}
        />
      ))}
    </div>
  );
}

function IntervalTable({
  title,
  lines,
  precision,
  alone,
  from,
  to,
  marks,
  clock,
}: Props & { precision: number; alone: boolean }) {
  const moments = columns(lines)
    .x.filter((at) => touches(at, precision, from, to))
    .reverse();
  const newest = Math.max(...lines.map((line) => line.start + (line.values.length - 1) * line.precision));
  const running = lines.some((line) => line.partial);
  return (
    <>
      <table class="data">
        <caption class={alone ? "away" : ""}>
          <span class={alone ? "" : "away"}>{title}, </span>by {durationLabel(precision)}, newest first
        </caption>
        <thead>
          <tr>
            <th scope="col">Interval</th>
            {lines.map((line) => (
              <th scope="col" class="figure" key={line.key}>
                <T text={line.label} most={60} />
              </th>
            ))}
            {marks.length > 0 && <th scope="col">Marks</th>}
          </tr>
        </thead>
        <tbody>
          {moments.slice(0, MOST).map((at) => (
            <tr key={at}>
              <th scope="row">
                {intervalOf(at, precision, clock)}
                {running && at === newest && <span class="faint"> running</span>}
              </th>
              {lines.map((line) => (
                <td class="figure" key={line.key}>
                  {value(valueAt(line, at), line.unit)}
                </td>
              ))}
              {marks.length > 0 && (
                <td>
                  {within(marks, at, precision).map((mark, i) => (
                    <span key={`${mark.time} ${mark.label}`}>
                      {i > 0 && ", "}
                      <T text={mark.label} />
                    </span>
                  ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {moments.length > MOST && <p class="faint">… {moments.length - MOST} more</p>}
    </>
  );
}
