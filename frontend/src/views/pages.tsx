// Pages: the busiest, the slowest, those that fail, and those that take most of all time.
import { address } from "../api/client";
import type { PagesAnswer } from "../api/types";
import { pollEvery } from "../lib/ranges";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Gate } from "../parts/gate";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { ORDERS, PageTable, type Order } from "./pagetable";

const CHOICES: { value: Order; text: string }[] = [
  { value: "count", text: "Busiest" },
  { value: "p95", text: "Slowest" },
  { value: "failing", text: "Failing" },
  { value: "total", text: "Most time" },
];

export function Pages() {
  const { range } = state.value;
  const order = ORDERS.find((each) => each === state.value.order) ?? "count";
  const fed = useFeed<PagesAnswer>(
    address("pages", { precision: range, order, limit: 50 }),
    pollEvery(range),
  );
  const sort = (next: Order) => set({ order: next === "count" ? "" : next }, true);
  return (
    <>
      <Toolbar title="Pages" ranged />
      <Gate fed={fed}>
        {({ rows, of, looked_at, sampled, window }) => (
          <Card
            title={CHOICES.find((each) => each.value === order)?.text ?? ""}
            about={
              of > 0 &&
              `${rows.length} of ${of}${sampled ? ", durations of a part of the requests" : ""}${looked_at < of ? `, ${looked_at} compared` : ""}`
            }
            actions={<Choice label="Order" options={CHOICES} chosen={order} choose={sort} />}
          >
            <PageTable rows={rows} order={order} sort={sort} />
            <p class="fine">
              Time is how long all requests of a page took together, as a share of that of all pages. The p95
              is of the slices of {window.histograms} s.
            </p>
          </Card>
        )}
      </Gate>
    </>
  );
}
