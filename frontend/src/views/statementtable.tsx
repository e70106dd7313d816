// Database statements as a table: how often, how long, failures, and the routes and tasks that send them.
import type { Statement } from "../api/types";
import { number, value } from "../lib/units";
import { follow, Go, ToSeries } from "../parts/go";
import { Head } from "../parts/head";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { T } from "../parts/text";

export const ORDERS = ["total", "count", "p95", "errors"] as const;
export type StatementOrder = (typeof ORDERS)[number];

const TITLES: Record<StatementOrder, string> = {
  total: "Share of time",
  count: "Count",
  p95: "p95",
  errors: "Errors",
};

/** Callers that a row names. */
const MOST = 3;

interface Props {
  rows: readonly Statement[];
  /** The route or task that the table is about. */
  caller?: string;
  order?: StatementOrder;
  sort?: (order: StatementOrder) => void;
}

export function StatementTable({ rows, caller, order, sort }: Props) {
  const head = (key: StatementOrder) => (
    <Head title={TITLES[key]} chosen={key === order} sort={sort && (() => sort(key))} />
  );
  return (
    <div class="scroll" role="region" aria-label="Table: Statements" tabIndex={0}>
      <table class="list named wide">
        <thead>
          <tr>
            <th scope="col">Statement</th>
            <th scope="col">
              <span class="away">Count over time</span>
            </th>
            {caller !== undefined && <Head title="By this" />}
            {head("count")}
            <Head title="Mean" />
            {head("p95")}
            {head("errors")}
            <Head title="Total time" />
            {head("total")}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.statement} class="to-row" onClick={follow}>
              <th scope="row" class="grow">
                <ToSeries name={row.series}>
                  <span class="name">
                    <T text={row.statement} most={160} />
                  </span>
                </ToSeries>
                {caller === undefined && <Callers row={row} />}
              </th>
              <td class="spark-cell">
                <Spark values={row.values} />
              </td>
              {caller !== undefined && (
                <td class="figure">{number(row.callers.find((each) => each.name === caller)?.count ?? 0)}</td>
              )}
              <td class="figure">{number(row.count)}</td>
              <td class="figure">{value(row.mean, "seconds")}</td>
              <td class="figure">{value(row.p95, "seconds")}</td>
              <td class="figure">
                {row.errors === 0 ? (
                  <span class="faint">0</span>
                ) : (
                  <span class="bad-text">{number(row.errors)}</span>
                )}
              </td>
              <td class="figure">{value(row.total, "seconds")}</td>
              <td class="figure">
                <Share share={row.share} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Callers({ row }: { row: Statement }) {
  if (row.callers.length === 0) return null;
  return (
    <p class="message-about">
      {row.callers.slice(0, MOST).map((each, i) => (
        <span key={`${each.kind} ${each.name}`}>
          {i > 0 && ", "}
          <Go view={each.kind} more={{ name: each.name }} class="noun">
            <T text={each.name} most={60} />
          </Go>{" "}
          <span class="faint">{number(each.count)}</span>
        </span>
      ))}
      {row.callers_of > MOST && <span class="faint"> +{row.callers_of - MOST}</span>}
    </p>
  );
}
