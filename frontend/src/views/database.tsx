// Database statements: those that take most time, the most frequent, the slowest, those that fail.
import { address } from "../api/client";
import type { StatementsAnswer } from "../api/types";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, value } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Empty, STATEMENTS } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Filter, LIMIT, Paging, PastTheEnd, placeOf } from "../parts/paging";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, set, state } from "../state/page";
import { ORDERS, StatementTable } from "./statementtable";

const CHOICES = [
  { value: "total", text: "Most time" },
  { value: "count", text: "Most frequent" },
  { value: "p95", text: "Slowest" },
  { value: "errors", text: "Errors" },
] as const;

export function Database() {
  const { range, filter, offset } = state.value;
  const order = ORDERS.find((each) => each === state.value.order) ?? "total";
  const fed = useFeed<StatementsAnswer>(
    address("statements", {
      precision: range,
      ...frame(),
      order,
      filter,
      limit: LIMIT,
      offset: offset || "",
    }),
    pollEvery(range),
  );
  const sort = (next: (typeof ORDERS)[number]) =>
    set({ order: next === "total" ? "" : next, offset: 0 }, true);
  return (
    <>
      <Toolbar title="Database" ranged />
      <div class="filters">
        <Filter label="Filter by statement" most={200} />
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
                <StatementTable rows={answer.rows} order={order} sort={sort} />
                <p class="fine">
                  Below a statement: the routes and tasks that send it, with the number of executions.
                  Durations from intervals of {durationLabel(answer.window.histograms)}. Share of time: of the
                  time of all statements.
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

/** "1 to 12 of 12; 4,210 statements took 12.3 s". */
function aboutOf({ rows, found, count, total, examined, of }: StatementsAnswer, offset: number): string {
  if (rows.length === 0) return "";
  const part = examined < of ? `, from ${number(examined)} of ${number(of)} label sets` : "";
  return `${placeOf(offset, rows.length, found)}${part}; ${number(count)} executions, ${value(total, "seconds")} in all`;
}

function None({ answer, order }: { answer: StatementsAnswer; order: string }) {
  const { filter, offset } = state.value;
  if (offset > 0 && answer.found > 0) return <PastTheEnd />;
  if (answer.count > 0 && filter) return <Empty title="No statements match" />;
  if (answer.count > 0 && order === "errors") return <Empty title="No statement failed in this window" />;
  if (answer.of > 0) return <Empty title="No statement in this window">Choose a wider range above.</Empty>;
  return (
    <Empty title="No database statements are recorded" setup={STATEMENTS}>
      One line where your application starts records each statement, without its values:
    </Empty>
  );
}
