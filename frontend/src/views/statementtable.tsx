// Database statements as a table: counts, durations, failures, and the routes and tasks that send them.
import type { Statement } from "../api/types";
import { number, value } from "../lib/units";
import { Go, ToSeries } from "../parts/go";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { T } from "../parts/text";

/** Maximum number of callers per row. */
const MOST = 3;

interface Props {
  rows: readonly Statement[];
  /** The route or task that the table is about. */
  caller?: string;
  order?: string;
  sort?: (order: string) => void;
}

export function StatementTable({ rows, caller, order, sort }: Props) {
  return (
    <Table
      label="Statements"
      class="named routes"
      rows={rows}
      keyOf={(row) => row.statement}
      order={order}
      sort={sort}
      columns={[
        {
          title: "Statement",
          cell: (row) => (
            <>
              <ToSeries name={row.series}>
                <span class="name">
                  <T text={row.statement} most={160} />
                </span>
              </ToSeries>
              {caller === undefined && <Callers row={row} />}
            </>
          ),
        },
        {
          title: "Count over time",
          untitled: true,
          class: "spark-cell",
          cell: (row) => <Spark values={row.values} />,
        },
        caller !== undefined && {
          title: "From here",
          cell: (row) => number(row.callers.find((each) => each.name === caller)?.count ?? 0),
        },
        {
          title: "Count",
          order: "count",
          class: caller === undefined ? "figure" : "figure rare",
          cell: (row) => number(row.count),
        },
        { title: "Mean", class: "figure rare", cell: (row) => value(row.mean, "seconds") },
        { title: "p95", order: "p95", cell: (row) => value(row.p95, "seconds") },
        {
          title: "Errors",
          order: "errors",
          cell: (row) => <span class={row.errors === 0 ? "faint" : "bad-text"}>{number(row.errors)}</span>,
        },
        { title: "Total time", class: "figure rare", cell: (row) => value(row.total, "seconds") },
        { title: "Share of time", order: "total", cell: (row) => <Share share={row.share} /> },
      ]}
    />
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
