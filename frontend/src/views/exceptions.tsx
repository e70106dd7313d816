// Exceptions of the range: in groups by type and place.
import { address } from "../api/client";
import type { ExceptionsAnswer, ExceptionSummary } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Filter } from "../parts/paging";
import { sinceUntil } from "../parts/timebar";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { ExceptionList } from "./exceptionlist";

/** Milliseconds between two requests. */
const EVERY = 10_000;
const LIMIT = 100;

const ORDERS = [
  { value: "count", text: "Count" },
  { value: "last", text: "Last seen" },
  { value: "first", text: "First seen" },
] as const;

export function Exceptions() {
  const { order, filter } = state.value;
  const chosen = ORDERS.find((each) => each.value === order)?.value ?? "count";
  const fed = useFeed<ExceptionsAnswer>(
    address("exceptions", { ...sinceUntil(), order: chosen, limit: LIMIT }),
    EVERY,
  );
  return (
    <>
      <Toolbar title="Exceptions" ranged />
      <div class="filters">
        <Filter label="Filter by type or text" most={200} />
      </div>
      <Gate fed={fed}>
        {(answer) => (
          <Card
            title="Exceptions"
            about={aboutOf(answer, matching(answer.groups, filter).length)}
            actions={
              <Choice
                label="Order"
                options={ORDERS}
                chosen={chosen}
                choose={(next) => set({ order: next === "count" ? "" : next }, true)}
              />
            }
          >
            {matching(answer.groups, filter).length > 0 ? (
              <ExceptionList rows={matching(answer.groups, filter)} now={answer.now} />
            ) : answer.groups.length > 0 ? (
              <Empty title="No listed exceptions match" />
            ) : (
              <Empty title="No exceptions in this window">
                Web integrations, Celery, RQ, and logging of errors record them.
              </Empty>
            )}
          </Card>
        )}
      </Gate>
    </>
  );
}

/** The listed groups whose type, text or place contains the filter. */
export function matching<G extends Pick<ExceptionSummary, "type" | "message" | "place">>(
  groups: readonly G[],
  filter: string,
): readonly G[] {
  const text = filter.toLowerCase();
  return groups.filter(({ type, message, place }) =>
    `${type} ${message} ${place}`.toLowerCase().includes(text),
  );
}

/** "57 in 12 groups, 2 new, in the last 24 h by 5 min". */
function aboutOf(answer: ExceptionsAnswer, matches: number): string {
  const { coarse, count, found, groups, precision, other, start } = answer;
  const parts = [`${number(count)} in ${number(found)} ${found === 1 ? "group" : "groups"}`];
  if (groups.length < found) parts.push(`${number(groups.length)} listed`);
  if (matches < groups.length) parts.push(`${number(matches)} match`);
  if (answer.new > 0) parts.push(`${number(answer.new)} new`);
  if (coarse > 0) parts.push(`${number(coarse)} only by type and function, for lack of room`);
  if (other > 0) parts.push(`${number(other)} more in no group`);
  parts.push(`since ${momentOf(start, state.value.clock)} by ${durationLabel(precision)}`);
  return parts.join(", ");
}
