// Counters and gauges with what they did within the window.
import type { ComponentChildren } from "preact";
import type { CounterRow, Window } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { number, unitOf, value } from "../lib/units";
import { Empty } from "../parts/empty";
import { ToSeries } from "../parts/go";
import { Pill } from "../parts/pill";
import { Spark } from "../parts/spark";
import { Name } from "../parts/text";

interface Props {
  rows: readonly CounterRow[];
  window: Window;
  label?: string;
  brief?: boolean;
  /** Instead of the table where there is no row. */
  empty?: ComponentChildren;
}

/** What stands for a row: of a counter how often, of a gauge its newest value, else the mean too. */
function shownOf(row: CounterRow) {
  if (row.kind === "gauge") return value(row.value, unitOf(row.name));
  if (row.kind === "counter") return number(row.count);
  return (
    <>
      {number(row.count)}
      <span class="faint sub">ø {value(row.value, unitOf(row.name))}</span>
    </>
  );
}

export function CounterTable({ rows, window, label = "Counters", brief = false, empty }: Props) {
  if (rows.length === 0) {
    return (
      empty ?? (
        <Empty
          title={`Nothing in the last ${durationLabel(window.end - window.start)}`}
          code={'from redmeter import Meter; Meter().count("signups")'}
        >
          Whatever is counted stands here by itself; nothing is to be declared.
        </Empty>
      )
    );
  }
  return (
    <div class="scroll" role="region" aria-label={`Table: ${label}`} tabIndex={0}>
      <table class="list named">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">
              <span class="away">Over time</span>
            </th>
            <th scope="col" class="figure">
              {brief ? "Count" : "In this window"}
            </th>
            <th scope="col" class="figure">
              <span class={brief ? "away" : ""}>Change</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row" class="grow">
                <ToSeries name={row.name}>
                  <Name name={row.name} />
                </ToSeries>
                {row.kind !== "counter" && <span class="tag">{row.kind}</span>}
                {row.series > 1 && <span class="faint sub">{number(row.series)} label sets</span>}
              </th>
              <td class="spark-cell">
                <Spark
                  values={row.values}
                  partial={row.partial}
                  slots={Math.max(1, Math.round((window.end - window.start) / row.precision))}
                />
              </td>
              <td class="figure">{shownOf(row)}</td>
              <td class="figure">
                {row.kind === "gauge" || row.before === null ? (
                  <span class="faint">–</span>
                ) : (
                  <Pill value={row.count} before={row.before} meaning="neutral" against="the window before" />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
