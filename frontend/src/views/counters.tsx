// Counters: every counter and gauge, by name, by count or by change, a page at a time.
import { useEffect, useRef, useState } from "preact/hooks";
import { address } from "../api/client";
import type { CountersAnswer } from "../api/types";
import { pollEvery } from "../lib/ranges";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Gate } from "../parts/gate";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { CounterTable } from "./countertable";
import { patternOf } from "./picker";

const LIMIT = 50;
/** Milliseconds of rest after a key before the filter counts. */
const REST = 250;
const ORDERS = [
  { value: "name", text: "Name" },
  { value: "count", text: "Count" },
  { value: "change", text: "Change" },
] as const;

function Filter() {
  const { filter } = state.value;
  const [text, write] = useState(filter);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => write(filter), [filter]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <input
      type="search"
      class="filter"
      aria-label="Filter by name"
      placeholder="Filter by name …"
      value={text}
      maxLength={512}
      spellcheck={false}
      onInput={(event) => {
        const wanted = event.currentTarget.value;
        write(wanted);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => set({ filter: wanted, offset: 0 }), REST);
      }}
    />
  );
}

export function Counters() {
  const { range, filter, offset } = state.value;
  const order = ORDERS.find((each) => each.value === state.value.order)?.value ?? "name";
  const path = address("counters", {
    precision: range,
    pattern: filter ? patternOf(filter) : "",
    order,
    limit: LIMIT,
    offset: offset || "",
  });
  const fed = useFeed<CountersAnswer>(path, pollEvery(range));
  return (
    <>
      <Toolbar title="Counters" ranged />
      <div class="filters">
        <Filter />
        <Choice
          label="Order"
          options={ORDERS}
          chosen={order}
          choose={(value) => set({ order: value === "name" ? "" : value, offset: 0 }, true)}
        />
      </div>
      <Gate fed={fed}>
        {({ rows, total, looked_at, window }) => (
          <Card
            title="Counters and gauges"
            about={
              total > 0 &&
              `${offset + 1} to ${offset + rows.length} of ${total.toLocaleString("en")}${looked_at < total && order !== "name" ? `, ${looked_at.toLocaleString("en")} compared` : ""}`
            }
            actions={total > LIMIT && <Paging offset={offset} total={total} />}
          >
            <CounterTable rows={rows} window={window} filtered={filter !== ""} />
            {rows.length > 20 && total > LIMIT && (
              <div class="card-foot">
                <Paging offset={offset} total={total} />
              </div>
            )}
          </Card>
        )}
      </Gate>
    </>
  );
}

function Paging({ offset, total }: { offset: number; total: number }) {
  const to = (next: number) => set({ offset: next }, true);
  return (
    <div class="choice" role="group" aria-label="Page of the list">
      <button type="button" disabled={offset === 0} onClick={() => to(Math.max(0, offset - LIMIT))}>
        Previous
      </button>
      <button type="button" disabled={offset + LIMIT >= total} onClick={() => to(offset + LIMIT)}>
        Next
      </button>
    </div>
  );
}
