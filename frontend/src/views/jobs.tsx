// Background tasks: runs by outcome, durations, waits in the queue.
import { address } from "../api/client";
import type { Task, TasksAnswer } from "../api/types";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, value } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Empty, TASKS } from "../parts/empty";
import { Gate } from "../parts/gate";
import { follow, Go } from "../parts/go";
import { Head } from "../parts/head";
import { Filter, LIMIT, Paging, PastTheEnd, placeOf } from "../parts/paging";
import { Share } from "../parts/share";
import { Spark } from "../parts/spark";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, set, state } from "../state/page";

const CHOICES = [
  { value: "total", text: "Most time" },
  { value: "count", text: "Most frequent" },
  { value: "p95", text: "Slowest" },
  { value: "failing", text: "Failures" },
] as const;
type Order = (typeof CHOICES)[number]["value"];

export function Jobs() {
  const { range, filter, offset } = state.value;
  const order = CHOICES.find((each) => each.value === state.value.order)?.value ?? "total";
  const fed = useFeed<TasksAnswer>(
    address("tasks", { precision: range, ...frame(), order, filter, limit: LIMIT, offset: offset || "" }),
    pollEvery(range),
  );
  const sort = (next: Order) => set({ order: next === "total" ? "" : next, offset: 0 }, true);
  return (
    <>
      <Toolbar title="Jobs" ranged />
      <div class="filters">
        <Filter label="Filter by task" most={200} />
        <Choice label="Order" options={CHOICES} chosen={order} choose={sort} />
      </div>
      <Gate fed={fed}>
        {(answer) => (
          <Card
            title={CHOICES.find((each) => each.value === order)?.text ?? ""}
            about={aboutOf(answer, offset)}
            actions={<Paging offset={offset} total={answer.found} />}
          >
            {answer.rows.length > 0 ? (
              <>
                <TaskTable rows={answer.rows} order={order} sort={sort} />
                <p class="fine">
                  Queue: mean wait from publishing to the start of a run; – where the publishing process does
                  not record it. Durations from intervals of {durationLabel(answer.window.histograms)}.
                </p>
              </>
            ) : (
              <None answer={answer} order={order} />
            )}
          </Card>
        )}
      </Gate>
    </>
  );
}

/** "1 to 7 of 7; 4,210 runs, 12 failed (0.29 %)". */
function aboutOf({ rows, found, count, failed, examined, of }: TasksAnswer, offset: number): string {
  if (rows.length === 0) return "";
  const part = examined < of ? `, from ${number(examined)} of ${number(of)} label sets` : "";
  const share = failed > 0 ? `, ${number(failed)} failed (${percent(failed / count)})` : "";
  return `${placeOf(offset, rows.length, found)}${part}; ${number(count)} runs${share}`;
}

function None({ answer, order }: { answer: TasksAnswer; order: Order }) {
  const { filter, offset } = state.value;
  if (offset > 0 && answer.found > 0) return <PastTheEnd />;
  if (filter) return <Empty title="No tasks match" />;
  if (order === "failing" && answer.of > 0) return <Empty title="No run failed in this window" />;
  if (answer.of > 0) return <Empty title="No run in this window">Choose a wider range above.</Empty>;
  return (
    <Empty title="No background tasks are recorded" setup={TASKS}>
      One line where your application starts records each run, its outcome and its wait in the queue:
    </Empty>
  );
}

interface TableProps {
  rows: readonly Task[];
  order: Order;
  sort: (order: Order) => void;
}

function TaskTable({ rows, order, sort }: TableProps) {
  const head = (key: Order, title: string) => (
    <Head title={title} chosen={key === order} sort={() => sort(key)} />
  );
  return (
    <div class="scroll" role="region" aria-label="Table: Tasks" tabIndex={0}>
      <table class="list named wide">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">
              <span class="away">Runs over time</span>
            </th>
            {head("count", "Runs")}
            {head("failing", "Failed")}
            <Head title="Queue" />
            <Head title="Mean" />
            {head("p95", "p95")}
            <Head title="Database" />
            {head("total", "Share of time")}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.task} class="to-row" onClick={follow}>
              <th scope="row" class="grow">
                <Go view="task" more={{ name: row.task }}>
                  <span class="name">
                    <T text={row.task} most={160} />
                  </span>
                </Go>
                <Outcomes row={row} />
              </th>
              <td class="spark-cell">
                <Spark values={row.values} />
              </td>
              <td class="figure">{number(row.count)}</td>
              <td class="figure">
                {row.failed === 0 ? <span class="faint">0</span> : <Share share={row.failing} tone="bad" />}
              </td>
              <td class="figure">{value(row.wait, "seconds")}</td>
              <td class="figure">{value(row.mean, "seconds")}</td>
              <td class="figure">{value(row.p95, "seconds")}</td>
              <td class="figure">{value(row.database, "seconds")}</td>
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

/** "retry 12, failure 3"; successes are the rest. */
export function Outcomes({ row }: { row: Task }) {
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
