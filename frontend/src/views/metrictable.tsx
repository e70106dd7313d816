// Series of one kind, each with its figure within the window, a sparkline, and its change.
import type { ComponentChildren } from "preact";
import type { MetricRow, Span } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { number, unitOf, value } from "../lib/units";
import { Empty } from "../parts/empty";
import { ToSeries } from "../parts/go";
import { Pill } from "../parts/pill";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { Name } from "../parts/text";

interface Props {
  rows: readonly MetricRow[];
  window: Span;
  label?: string;
  brief?: boolean;
  /** Replaces a table without rows. */
  empty?: ComponentChildren;
}

/** The figure of a row: the count of a counter, the newest value of a gauge, the p95 of a histogram. */
function shownOf(row: MetricRow) {
  // Of the last name that was read there may be more label sets.
  const counted = `${row.complete ? "" : "≥ "}${number(row.count)}`;
  if (row.kind === "counter") return counted;
  if (row.kind !== "histogram")
    return row.series > 1 ? <span class="faint">by label</span> : value(row.value, unitOf(row.name));
  return (
    <>
      {row.p95 === null && row.count > 0 ? <NotRead /> : value(row.p95, unitOf(row.name))}
      <span class="faint sub">{counted} values</span>
    </>
  );
}

/** Instead of a p95 that would take too many series or bytes to read: see rowcurves.py. */
function NotRead() {
  return (
    <span
      class="faint"
      title="A list reads up to 50 histograms and 4 MB of them. Open the row, or choose a label set."
    >
      p95 not read
    </span>
  );
}

/** The change of that figure compared with the window before; a gauge has none. */
function Changed({ row }: { row: MetricRow }) {
  const [now, before] = row.kind === "counter" ? [row.count, row.before] : [row.p95, row.p95_before];
  if (now === null || before === null) return <span class="faint">–</span>;
  return <Pill value={now} before={before} meaning="neutral" against="the compared period" />;
}

export function MetricTable({ rows, window, label = "Counters", brief = false, empty }: Props) {
  if (rows.length === 0) {
    return (
      empty ?? (
        <Empty
          title={`Nothing in the last ${durationLabel(window.end - window.start)}`}
          code={'from redmeter import Meter; Meter().count("signups")'}
        >
          Metrics appear here automatically as soon as your app records them.
        </Empty>
      )
    );
  }
  const p95 = rows[0]?.kind === "histogram";
  return (
    <Table
      label={label}
      class="named"
      rows={rows}
      keyOf={(row) => row.name}
      columns={[
        {
          title: "Name",
          cell: (row) => (
            <>
              <ToSeries name={row.name}>
                <Name name={row.name} />
              </ToSeries>
              {row.kind !== "counter" && <span class="tag">{row.kind}</span>}
              {row.series > 1 && <span class="faint sub">{number(row.series)} label sets</span>}
            </>
          ),
        },
        {
          title: p95 ? "p95 over time" : "Over time",
          untitled: true,
          class: "spark-cell",
          cell: (row) => (
            <Spark
              values={row.values}
              partial={row.partial}
              slots={Math.max(1, Math.round((window.end - window.start) / row.precision))}
            />
          ),
        },
        { title: p95 ? "p95" : brief ? "Count" : "In this window", cell: shownOf },
        {
          title: p95 ? "Change of p95" : "Change",
          untitled: brief,
          cell: (row) => <Changed row={row} />,
        },
      ]}
    />
  );
}
