// The database statements, exceptions and log messages of a route or task.
import { address } from "../api/client";
import type { ExceptionsAnswer, MessagesAnswer, StatementsAnswer } from "../api/types";
import { pollEvery } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Go } from "../parts/go";
import { sinceUntil } from "../parts/timebar";
import { useFeed } from "../state/live";
import { frame, state } from "../state/page";
import { ExceptionList } from "./exceptionlist";
import { Frequent } from "./messagelists";
import { StatementTable } from "./statementtable";

/** Rows of each list. */
const MOST = 10;

export function CallerStatements({ name }: { name: string }) {
  const { range } = state.value;
  const { data } = useFeed<StatementsAnswer>(
    address("statements", { precision: range, ...frame(), caller: name, limit: MOST }),
    Math.max(pollEvery(range), 10_000),
    false,
  );
  if (!data || data.rows.length === 0) return null;
  return (
    <Card
      title="Database statements"
      about={
        data.found > MOST
          ? `the ${MOST} with most time of ${number(data.found)}`
          : "by total time, of all callers"
      }
      actions={
        <Go view="database" class="to">
          All statements
        </Go>
      }
    >
      <StatementTable rows={data.rows} caller={name} />
    </Card>
  );
}

/** Log messages that contain the name of a route or task, from the window or the last hour. */
export function CallerMessages({ name }: { name: string }) {
  const { since, until } = frame();
  const path = address("messages", { since, until, filter: name, limit: MOST });
  const { data } = useFeed<MessagesAnswer>(path, Math.max(pollEvery(state.value.range), 10_000), false);
  if (!data || name.length < 2 || data.frequent.length === 0) return null;
  return (
    <Card
      title="Messages"
      about={`that contain the name, ${since === null ? "in the last hour" : "in this window"}`}
      actions={
        <Go view="messages" more={{ filter: name }} class="to">
          All of these
        </Go>
      }
    >
      <Frequent rows={data.frequent} now={data.now} against="" />
    </Card>
  );
}

export function CallerExceptions({ name }: { name: string }) {
  const { data } = useFeed<ExceptionsAnswer>(
    address("exceptions", { route: name, ...sinceUntil(), limit: MOST }),
    Math.max(pollEvery(state.value.range), 10_000),
    false,
  );
  if (!data || data.groups.length === 0) return null;
  const groups = `${number(data.found)} ${data.found === 1 ? "group" : "groups"}`;
  return (
    <Card
      title="Exceptions"
      about={`${number(data.count)} in ${groups}, since ${momentOf(data.start, state.value.clock)}`}
    >
      <ExceptionList rows={data.groups} now={data.now} />
    </Card>
  );
}
