// The table behind a chart: the same values, the newest first.
import type { Mark } from "../api/types";
import { sliceOf, type Clock } from "../lib/time";
import { value } from "../lib/units";
import { T } from "../parts/text";
import { columns, valueAt, type Line } from "./lines";

interface Props {
  title: string;
  lines: readonly Line[];
  precision: number;
  from: number;
  to: number;
  marks: readonly Mark[];
  clock: Clock;
}

/** Most rows; a chart of a zoomed window may hold more than anybody reads. */
const MOST = 500;

export function DataTable({ title, lines, precision, from, to, marks, clock }: Props) {
  const moments = columns(lines)
    .x.filter((at) => at >= from && at <= to)
    .reverse();
  const newest = Math.max(...lines.map((line) => line.start + (line.values.length - 1) * line.precision));
  const running = lines.some((line) => line.partial);
  return (
    <div class="scroll tall" role="region" aria-label={`Values of ${title}`} tabIndex={0}>
      <table class="data">
        <caption class="away">{title}, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Slice</th>
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
                {sliceOf(at, precision, clock)}
                {running && at === newest && <span class="faint"> running</span>}
              </th>
              {lines.map((line) => (
                <td class="figure" key={line.key}>
                  {value(valueAt(line, at), line.unit)}
                </td>
              ))}
              {marks.length > 0 && (
                <td>
                  {marks
                    .filter((mark) => mark.time >= at && mark.time < at + precision)
                    .map((mark) => (
                      <T key={mark.time} text={mark.label} />
                    ))}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {moments.length > MOST && <p class="faint">… {moments.length - MOST} more</p>}
    </div>
  );
}
