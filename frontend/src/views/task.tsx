// The page of one background task: its runs by outcome, its durations, its statements, its exceptions.
import { address } from "../api/client";
import type { SeriesAnswer, SummaryAnswer, TasksAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import { pollEvery } from "../lib/ranges";
import { ERRORS } from "../lib/severity";
import { number, percent, value } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Figure } from "../parts/figure";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, state } from "../state/page";
import { CallerExceptions, CallerMessages, CallerStatements } from "./caller";
import { latencyLines, outcomeLines } from "./routelines";

/** Places in the palette: green for success, red for failure. */
const PLACES: Record<string, number> = { success: 2, failure: 5, retry: 4, p50: 0, p95: 1, p99: 3 };

export function TaskPage() {
  const { name, range } = state.value;
  const every = pollEvery(range);
  const listed = useFeed<TasksAnswer>(
    address("tasks", { precision: range, ...frame(), filter: name }),
    every,
  );
  const window = listed.data?.window;
  const label = `task=${name}`;
  const runs = useFeed<SeriesAnswer>(
    address("series", {
      name: "task_runs",
      label,
      by: "state",
      precision: window?.precision ?? range,
      since: window?.start ?? null,
      until: frame().until,
    }),
    every,
  );
  const width = window?.histograms ?? 60;
  const durations = useFeed<SummaryAnswer>(
    address("summary", {
      name: "task_seconds",
      label,
      precision: width,
      q: ["0.5", "0.95", "0.99"],
      over_time: "1",
      since: window?.histograms_start ?? null,
      until: frame().until,
    }),
    every,
  );
  return (
    <>
      <Toolbar title={<T text={name} most={160} />} ranged>
        <span class="tag">task</span>
      </Toolbar>
      <Gate fed={listed}>
        {({ rows, window, now }) => {
          const row = rows.find((each) => each.task === name);
          if (!row)
            return (
              <Card title="Runs">
                <Empty title="No run of this task in this window">
                  Choose a wider range, or another task.
                </Empty>
              </Card>
            );
          const lines = [
            ...outcomeLines(runs.data?.series ?? []),
            ...latencyLines(durations.data?.summaries[0] ?? null, durations.data?.precision ?? width),
          ];
          return (
            <>
              <ul class="tiles four" aria-label="Key figures">
                <Figure title="Runs" value={number(row.count)} note={outcomesOf(row.outcomes)} />
                <Figure
                  title="Failed"
                  value={percent(row.failing)}
                  note={`${number(row.failed)} of ${number(row.count)}`}
                />
                <Figure
                  title="p95 duration"
                  value={value(row.p95, "seconds")}
                  note={row.mean === null ? "" : `mean ${value(row.mean, "seconds")}`}
                />
                <Figure
                  title="Mean wait in the queue"
                  value={value(row.wait, "seconds")}
                  note={row.wait === null ? "not recorded where tasks are published" : ""}
                />
              </ul>
              <ChartGroup
                title="Runs and durations"
                id="task"
                lines={lines}
                places={lines.map((line) => PLACES[line.key] ?? 6)}
                captions={{ "": "Runs by outcome", seconds: "Duration" }}
                stacked=""
                precision={runs.data?.precision ?? window.precision}
                start={runs.data?.start ?? window.start}
                end={runs.data?.end ?? window.end}
                now={now}
                marks={[]}
                empty={<Empty title="Nothing in this window" />}
                actions={
                  <Go view="messages" more={{ logger: "celery", severity: ERRORS }} class="to">
                    Messages of failed runs
                  </Go>
                }
              />
            </>
          );
        }}
      </Gate>
      <CallerStatements name={name} />
      <CallerExceptions name={name} />
      <CallerMessages name={name} />
    </>
  );
}

/** "success 40, retry 2". */
function outcomesOf(outcomes: TasksAnswer["rows"][number]["outcomes"]): string {
  return outcomes.map((each) => `${each.state} ${number(each.count)}`).join(", ");
}
