// The page of one background task: its runs by outcome, its durations, its statements, its exceptions.
import type { JobsAnswer } from "../api/types";
import { ERRORS } from "../lib/severity";
import { number, percent, value } from "../lib/units";
import { Go } from "../parts/go";
import { outcomeLines } from "./routelines";
import { Subject } from "./subject";

export function TaskPage() {
  return (
    <Subject
      tag="task"
      list="jobs"
      limit={50}
      rowOf={({ rows }: JobsAnswer, name) => rows.find((each) => each.task === name)}
      counts="task_runs"
      by="state"
      durations="task_seconds"
      linesOf={outcomeLines}
      figures={(row) => [
        {
          title: "Runs",
          value: number(row.count),
          note: row.outcomes.map((each) => `${each.state} ${number(each.count)}`).join(", "),
        },
        {
          title: "Failed",
          value: row.count > 0 ? percent(row.failing) : "–",
          note: `${number(row.failed)} of ${number(row.count)}`,
        },
        {
          title: "p95 duration",
          value: value(row.p95, "seconds"),
          note: row.mean === null ? "" : `mean ${value(row.mean, "seconds")}`,
        },
        {
          title: "Mean wait in the queue",
          value: value(row.wait, "seconds"),
          note: row.wait === null ? "not recorded where tasks are published" : "",
        },
      ]}
      title="Runs and durations"
      captions={{ "": "Runs by outcome", seconds: "Duration" }}
      actions={
        <Go view="messages" more={{ logger: "celery", severity: ERRORS }} class="to">
          Messages of failed runs
        </Go>
      }
      event="run"
    />
  );
}
