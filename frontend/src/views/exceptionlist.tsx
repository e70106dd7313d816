// Groups of exceptions as a table: counts, first and last occurrence, routes and releases.
import type { ExceptionSummary, ExceptionShare } from "../api/types";
import { ago, momentOf } from "../lib/time";
import { number } from "../lib/units";
import { Go } from "../parts/go";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { T } from "../parts/text";
import { state } from "../state/page";
import { typeOf } from "./exceptionnames";

/** Maximum number of routes and releases per row. */
const MOST = 2;

export function ExceptionList({ rows, now }: { rows: readonly ExceptionSummary[]; now: number }) {
  const { clock } = state.value;
  const moment = (at: number) => <span title={momentOf(at, clock)}>{ago(at, now)}</span>;
  return (
    <Table
      label="Exceptions"
      class="named dated"
      rows={rows}
      keyOf={(row) => row.id}
      columns={[
        {
          title: "Exception",
          cell: (row) => (
            <>
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
            </>
          ),
        },
        {
          title: "Count over time",
          untitled: true,
          class: "spark-cell",
          cell: (row) => <Spark values={row.series.values} />,
        },
        { title: "Count", cell: (row) => number(row.count) },
        { title: "First seen", class: "figure rare", cell: (row) => moment(row.first) },
        { title: "Last seen", cell: (row) => moment(row.last) },
        { title: "Routes", class: "names", cell: (row) => <Names shares={row.routes} /> },
        { title: "Releases", class: "names rare", cell: (row) => <Names shares={row.releases} /> },
      ]}
    />
  );
}

function Names({ shares }: { shares: readonly ExceptionShare[] }) {
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
