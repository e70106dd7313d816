// Routes and how their requests went, as a table that can be sorted.
import type { Page } from "../api/types";
import { figures, number, seconds, value } from "../lib/units";
import { Empty, MIDDLEWARE } from "../parts/empty";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { T } from "../parts/text";

export const ORDERS = ["count", "p95", "failing", "total"] as const;
export type Order = (typeof ORDERS)[number];

interface Props {
  rows: readonly Page[];
  order: Order;
  brief?: boolean;
  sort?: (order: Order) => void;
}

const TITLES: Record<Order, string> = {
  count: "Requests",
  p95: "p95",
  failing: "Failing",
  total: "Share of time",
};

/** A pattern of all counters of a route; what means something in a pattern stands for anything. */
export function patternOfRoute(route: string): string {
  return `*route="${route.replace(/[*?[\]\\"]/g, "?")}"*`;
}

export function PageTable({ rows, order, brief = false, sort }: Props) {
  if (rows.length === 0) {
    return (
      <Empty title="No pages yet" code={MIDDLEWARE}>
        Requests come from <code>redmeter.integrations</code>, or from a log by <code>redmeter replay</code>.
      </Empty>
    );
  }
  const head = (key: Order) => (
    <th
      scope="col"
      class="figure"
      {...(sort ? { "aria-sort": key === order ? ("descending" as const) : ("none" as const) } : {})}
    >
      {sort ? (
        <button type="button" class="sort" onClick={() => sort(key)}>
          {TITLES[key]}
        </button>
      ) : (
        TITLES[key]
      )}
    </th>
  );
  return (
    <div class="scroll" role="region" aria-label="Table: Pages" tabIndex={0}>
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Page</th>
            <th scope="col">
              <span class="away">Requests over time</span>
            </th>
            {head("count")}
            {!brief && (
              <th scope="col" class="figure">
                a second
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
            <tr key={row.route ?? ""}>
              <th scope="row" class="grow">
                {row.route === null ? (
                  <span class="faint">(no route)</span>
                ) : (
                  <Go view="counters" more={{ filter: patternOfRoute(row.route) }}>
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
                {!brief && (
                  <span class="faint sub">{(row.share * 100).toFixed(row.share < 0.1 ? 1 : 0)} %</span>
                )}
              </td>
              {!brief && <td class="figure">{figures(row.per_second)}</td>}
              <td class="figure">
                {row.failed === 0 ? <span class="faint">0</span> : <Share share={row.failing} tone="bad" />}
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
