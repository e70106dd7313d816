// Background tasks: runs by outcome, durations, waits in the queue.
import type { Task, JobsAnswer } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { number, percent, value } from "../lib/units";
import { Empty, TASKS } from "../parts/empty";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { T } from "../parts/text";
import { Ranked } from "./ranked";

const ORDERS = [
  { value: "total", text: "Most time" },
  { value: "count", text: "Most frequent" },
  { value: "p95", text: "Slowest" },
  { value: "failing", text: "Failures", fails: true },
];

export function Jobs() {
  return (
    <Ranked<JobsAnswer>
      title="Jobs"
      path="jobs"
      thing="task"
      event="run"
      orders={ORDERS}
      about={({ count, failed }) =>
        `; ${number(count)} runs${failed > 0 ? `, ${number(failed)} failed (${percent(failed / count)})` : ""}`
      }
      table={({ rows }, order, sort) => <TaskTable rows={rows} order={order} sort={sort} />}
      note={({ window }) => (
        <>
          Queue: mean wait from publishing to the start of a run; – where the publishing process does not
          record it. Durations from intervals of {durationLabel(window.histograms)}.
        </>
      )}
      none={
        <Empty title="No background tasks are recorded" setup={TASKS}>
          One line where your application starts records each run, its outcome and its wait in the queue:
        </Empty>
      }
    />
  );
}

interface TableProps {
  rows: readonly Task[];
  order: string;
  sort: (order: string) => void;
}

function TaskTable({ rows, order, sort }: TableProps) {
  return (
    <Table
      label="Tasks"
      class="named routes"
      rows={rows}
      keyOf={(row) => row.task}
      order={order}
      sort={sort}
      columns={[
        {
          title: "Task",
          cell: (row) => (
            <>
              <Go view="task" more={{ name: row.task }}>
                <span class="name">
                  <T text={row.task} most={160} />
                </span>
              </Go>
              <Outcomes row={row} />
            </>
          ),
        },
        {
          title: "Runs over time",
          untitled: true,
          class: "spark-cell",
          cell: (row) => <Spark values={row.values} />,
        },
        { title: "Runs", order: "count", cell: (row) => number(row.count) },
        {
          title: "Failed",
          order: "failing",
          cell: (row) =>
            row.failed === 0 ? <span class="faint">0</span> : <Share share={row.failing} tone="bad" />,
        },
        { title: "Queue", class: "figure rare", cell: (row) => value(row.wait, "seconds") },
        { title: "Mean", class: "figure rare", cell: (row) => value(row.mean, "seconds") },
        { title: "p95", order: "p95", cell: (row) => value(row.p95, "seconds") },
        { title: "Database", class: "figure rare", cell: (row) => value(row.database, "seconds") },
        { title: "Share of time", order: "total", cell: (row) => <Share share={row.share} /> },
      ]}
    />
  );
}

/** "retry 12, failure 3"; successes are the rest. */
function Outcomes({ row }: { row: Task }) {
  const others = row.outcomes.filter((each) => each.state !== "success");
  if (others.length === 0) return null;
  return (
    <p class="message-about">
      {others.map((each, i) => (
        <span key={each.state}>
          {i > 0 && ", "}
          <span class={each.failed ? "bad-text" : ""}>
            <T text={each.state} most={30} /> {number(each.count)}
          </span>
        </span>
      ))}
    </p>
  );
}
