// Routes as a sortable table: requests, error rates and response times.
import type { Route } from "../api/types";
import { number, percent, rate, value } from "../lib/units";
import { Empty, MIDDLEWARE } from "../parts/empty";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { T } from "../parts/text";

interface Props {
  rows: readonly Route[];
  order: string;
  brief?: boolean;
  sort?: (order: string) => void;
}

/** A pattern for all series whose label has this value; wildcards within the value match anything. */
export function patternOfLabel(label: string, value: string, name = ""): string {
  const literal = (text: string) => text.replace(/[*?[\]\\"]/g, "?");
  return `${literal(name)}*${literal(label)}="${literal(value)}"*`;
}

export function NoRoutes() {
  return (
    <Empty title="No requests in this window" code={MIDDLEWARE}>
      Choose a wider range, or record requests with <code>redmeter.integrations</code> or{" "}
      <code>redmeter replay</code>.
    </Empty>
  );
}

export function RouteTable({ rows, order, brief = false, sort }: Props) {
  if (rows.length === 0) return <NoRoutes />;
  return (
    <Table
      label="Routes"
      class="named routes"
      rows={rows}
      keyOf={(row) => row.route ?? ""}
      order={order}
      sort={sort}
      columns={[
        {
          title: "Route",
          cell: ({ route }) =>
            route === null ? (
              <span class="faint">(no route)</span>
            ) : (
              <Go view="route" more={{ name: route }}>
                <span class="name">
                  <T text={route} most={160} />
                </span>
              </Go>
            ),
        },
        {
          title: "Requests over time",
          untitled: true,
          class: "spark-cell",
          cell: (row) => <Spark values={row.values} />,
        },
        {
          title: "Requests",
          order: "count",
          cell: (row) => (
            <>
              {number(row.count)}
              {!brief && <span class="faint sub">{percent(row.share)}</span>}
            </>
          ),
        },
        !brief && { title: "Rate", class: "figure rare", cell: (row) => rate(row.per_second) },
        {
          title: "Error rate",
          order: "failing",
          cell: (row) =>
            row.failed === null || row.failing === null ? (
              <span class="faint" title="unknown: their labels are lost beyond the limit of label sets">
                unknown
              </span>
            ) : row.failed === 0 ? (
              <span class="faint">0</span>
            ) : (
              <>
                {!brief && <span class="sub">{number(row.failed)}</span>}{" "}
                <Share share={row.failing} tone="bad" />
              </>
            ),
        },
        !brief && { title: "Mean", class: "figure rare", cell: (row) => value(row.mean, "seconds") },
        { title: "p95", order: "p95", cell: (row) => value(row.p95, "seconds") },
        { title: "Share of time", order: "total", cell: (row) => <Share share={row.total_share} /> },
      ]}
    />
  );
}
