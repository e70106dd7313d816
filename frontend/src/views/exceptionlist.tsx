// Groups of exceptions, as a table: how often, since when, where, on which routes and in which releases.
import type { ErrorGroup, ErrorShare } from "../api/types";
import { ago, momentOf } from "../lib/time";
import { number } from "../lib/units";
import { follow, Go } from "../parts/go";
import { Spark } from "../parts/spark";
import { T } from "../parts/text";
import { state } from "../state/page";
import { typeOf } from "./exceptionnames";

/** Routes and releases that a row names. */
const MOST = 2;

export function ExceptionList({ rows, now }: { rows: readonly ErrorGroup[]; now: number }) {
  const { clock } = state.value;
  return (
    <div class="scroll" role="region" aria-label="Table: Exceptions" tabIndex={0}>
      <table class="list named wide">
        <thead>
          <tr>
            <th scope="col">Exception</th>
            <th scope="col">
              <span class="away">Count over time</span>
            </th>
            <th scope="col" class="figure">
              Count
            </th>
            <th scope="col" class="figure">
              First seen
            </th>
            <th scope="col" class="figure">
              Last seen
            </th>
            <th scope="col">Routes</th>
            <th scope="col">Releases</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} class="to-row" onClick={follow}>
              <th scope="row" class="grow">
                {row.is_new && <span class="what new">new</span>}{" "}
                <Go view="exception" more={{ name: row.id }}>
                  <T text={typeOf(row.type)} most={120} />
                </Go>
                <p class="message-about">
                  {row.message && <T text={row.message} most={160} />}{" "}
                  {row.place && (
                    <span class="faint">
                      <T text={row.place} most={120} />
                    </span>
                  )}
                </p>
              </th>
              <td class="spark-cell">
                <Spark values={row.series.values} />
              </td>
              <td class="figure">{number(row.count)}</td>
              <td class="figure" title={momentOf(row.first, clock)}>
                {ago(row.first, now)}
              </td>
              <td class="figure" title={momentOf(row.last, clock)}>
                {ago(row.last, now)}
              </td>
              <td class="names">
                <Names shares={row.routes} />
              </td>
              <td class="names">
                <Names shares={row.releases} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Names({ shares }: { shares: readonly ErrorShare[] }) {
  if (shares.length === 0) return <span class="faint">–</span>;
  const text = shares
    .slice(0, MOST)
    .map((each) => each.name)
    .join(", ");
  return (
    <>
      <T text={text} most={80} />
      {shares.length > MOST && <span class="faint"> +{shares.length - MOST}</span>}
    </>
  );
}
