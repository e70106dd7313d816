// Pages: the busiest, the slowest, those that fail, and those that take most of all time.
import { address } from "../api/client";
import type { PagesAnswer } from "../api/types";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Filter, LIMIT, Paging, PastTheEnd, placeOf } from "../parts/paging";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, set, state } from "../state/page";
import { ORDERS, PageTable, type Order } from "./pagetable";

const CHOICES: { value: Order; text: string }[] = [
  { value: "count", text: "Busiest" },
  { value: "p95", text: "Slowest" },
  { value: "failing", text: "Error rate" },
  { value: "total", text: "Most time" },
];

/** Which part of what there is was looked at. */
function partOf({ sampled, examined, of }: PagesAnswer): string {
  const parts = [
    sampled ? "response times of a sample of requests" : "",
    examined < of ? `from ${number(examined)} of ${number(of)} label sets` : "",
  ].filter(Boolean);
  return parts.map((each) => `, ${each}`).join("");
}

/** Why the list is empty, where it is not that nothing is there. */
function noneOf(order: Order, offset: number, { found, of }: PagesAnswer) {
  if (offset > 0 && found > 0) return <PastTheEnd />;
  if (of > 0 && state.value.filter) return <Empty title="No routes match" />;
  return of > 0 && order === "failing" ? <Empty title="No request failed in this window" /> : null;
}

export function Pages() {
  const { range, filter, offset } = state.value;
  const order = ORDERS.find((each) => each === state.value.order) ?? "count";
  const fed = useFeed<PagesAnswer>(
    address("pages", { precision: range, ...frame(), order, filter, limit: LIMIT, offset: offset || "" }),
    pollEvery(range),
  );
  const sort = (next: Order) => set({ order: next === "count" ? "" : next, offset: 0 }, true);
  return (
    <>
      <Toolbar title="Routes" ranged />
      <div class="filters">
        <Filter label="Filter by route" most={200} />
        <Choice label="Order" options={CHOICES} chosen={order} choose={sort} />
      </div>
      <Gate fed={fed}>
        {(answer) => {
          const { rows, found, window } = answer;
          return (
            <Card
              title={CHOICES.find((each) => each.value === order)?.text ?? ""}
              about={rows.length > 0 && `${placeOf(offset, rows.length, found)}${partOf(answer)}`}
              actions={<Paging offset={offset} total={found} />}
            >
              <PageTable
                rows={rows}
                order={order}
                sort={sort}
                window={window}
                empty={noneOf(order, offset, answer)}
              />
              <p class="fine">
                Share of time: the total time of a route's requests, as a share of that of all routes. p95
                from intervals of {durationLabel(window.histograms)}.
              </p>
              {rows.length > 20 && found > LIMIT && (
                <div class="card-foot">
                  <Paging offset={offset} total={found} />
                </div>
              )}
            </Card>
          );
        }}
      </Gate>
    </>
  );
}
