// Routes and how their requests went, as a table that can be sorted.
import type { ComponentChildren } from "preact";
import type { Route, Span } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { number, percent, rate, seconds, value } from "../lib/units";
import { Empty, MIDDLEWARE } from "../parts/empty";
import { follow, Go } from "../parts/go";
import { Head } from "../parts/head";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { T } from "../parts/text";

export const ORDERS = ["count", "p95", "failing", "total"] as const;
export type Order = (typeof ORDERS)[number];

interface Props {
  rows: readonly Route[];
  order: Order;
  window: Span;
  /** Instead of the usual words where there is no row. */
  empty?: ComponentChildren;
  brief?: boolean;
  sort?: (order: Order) => void;
}

const TITLES: Record<Order, string> = {
  count: "Requests",
  p95: "p95",
  failing: "Error rate",
  total: "Share of time",
};

/** A pattern of all series whose label has a value; what means something in a pattern stands for
 * anything. */
export function patternOfLabel(label: string, value: string, name = ""): string {
  const literal = (text: string) => text.replace(/[*?[\]\\"]/g, "?");
  return `${literal(name)}*${literal(label)}="${literal(value)}"*`;
}

export function PageTable({ rows, order, window, empty, brief = false, sort }: Props) {
  if (rows.length === 0) {
    if (empty) return empty;
    return (
      <Empty title={`No requests in the last ${durationLabel(window.end - window.start)}`} code={MIDDLEWARE}>
        A wider range may have some. Requests come from <code>redmeter.integrations</code>, or from a log by{" "}
        <code>redmeter replay</code>.
      </Empty>
    );
  }
  const head = (key: Order) => (
    <Head title={TITLES[key]} chosen={key === order} sort={sort && (() => sort(key))} />
  );
  return (
    <div class="scroll" role="region" aria-label="Table: Routes" tabIndex={0}>
      <table class={brief ? "list named pages" : "list named wide"}>
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">
              <span class="away">Requests over time</span>
            </th>
            {head("count")}
            {!brief && (
              <th scope="col" class="figure">
                Rate
              </th>
            )}
            {head("failing")}
            {!brief && (
              <th scope="col" class="figure">
                Mean
              </th>
            )}
            {head("p95")}
            {head("total")}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.route ?? ""} class="to-row" onClick={follow}>
              <th scope="row" class="grow">
                {row.route === null ? (
                  <span class="faint">(no route)</span>
                ) : (
                  <Go view="route" more={{ name: row.route }}>
                    <span class="name">
                      <T text={row.route} most={160} />
                    </span>
                  </Go>
                )}
              </th>
              <td class="spark-cell">
                <Spark values={row.values} />
              </td>
              <td class="figure">
                {number(row.count)}
                {!brief && <span class="faint sub">{percent(row.share)}</span>}
              </td>
              {!brief && <td class="figure">{rate(row.per_second)}</td>}
              <td class="figure">
                {row.failed === 0 ? (
                  <span class="faint">0</span>
                ) : (
                  <>
                    {!brief && <span class="sub">{number(row.failed)}</span>}{" "}
                    <Share share={row.failing} tone="bad" />
                  </>
                )}
              </td>
              {!brief && <td class="figure">{value(row.mean, "seconds")}</td>}
              <td class="figure">{row.p95 === null ? <span class="faint">–</span> : seconds(row.p95)}</td>
              <td class="figure">
                <Share share={row.total_share} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
