// Database statements: those that take most time, the most frequent, the slowest, those that fail.
import type { StatementsAnswer } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { number, value } from "../lib/units";
import { Empty, STATEMENTS } from "../parts/empty";
import { Ranked } from "./ranked";
import { StatementTable } from "./statementtable";

const ORDERS = [
  { value: "total", text: "Most time" },
  { value: "count", text: "Most frequent" },
  { value: "p95", text: "Slowest" },
  { value: "errors", text: "Errors", fails: true },
];

export function Database() {
  return (
    <Ranked<StatementsAnswer>
      title="Database"
      path="statements"
      thing="statement"
      timed="All figures"
      event="statement"
      orders={ORDERS}
      about={({ count, total }) => `; ${number(count)} executions, ${value(total, "seconds")} in all`}
      table={({ rows }, order, sort) => <StatementTable rows={rows} order={order} sort={sort} />}
      note={({ window }) => (
        <>
          Below a statement: the routes and tasks that send it, with the number of executions. Durations from
          intervals of {durationLabel(window.histograms)}. Share of time: of the time of all statements.
        </>
      )}
      none={
        <Empty title="No database statements are recorded" setup={STATEMENTS}>
          One line where your application starts records each statement, without its values:
        </Empty>
      }
    />
  );
}
