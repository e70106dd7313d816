// A list of routes, statements or tasks: filtered, ordered, a page at a time.
import type { ComponentChildren } from "preact";
import { address } from "../api/client";
import type { Span } from "../api/types";
import { pollEvery } from "../lib/ranges";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Filter, LIMIT, Paging, PastTheEnd, placeOf } from "../parts/paging";
import { Timed } from "../parts/timed";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, set, state } from "../state/page";

interface Listing {
  now: number;
  missing: string[];
  window: Span;
  rows: readonly unknown[];
  found: number;
  of: number;
  examined: number;
}

interface Props<A extends Listing> {
  title: string;
  /** Endpoint of the API. */
  path: string;
  /** Nouns for a row and for an event that it counts: "task", "run". */
  thing: string;
  event: string;
  /** The first is the default; `fails`: only rows with failures are listed. */
  orders: readonly { value: string; text: string; fails?: boolean }[];
  /** Text after "1 to 7 of 7". */
  about: (answer: A) => string;
  table: (answer: A, order: string, sort: (order: string) => void) => ComponentChildren;
  note: (answer: A) => ComponentChildren;
  /** The columns that come from histograms. */
  timed?: string;
  /** Shown if nothing is recorded. */
  none: ComponentChildren;
}

export function Ranked<A extends Listing>({ title, path, thing, orders, timed, ...about }: Props<A>) {
  const { range, filter, offset } = state.value;
  const order = orders.find((each) => each.value === state.value.order) ?? orders[0];
  const chosen = order?.value ?? "";
  const fed = useFeed<A>(
    address(path, {
      precision: range,
      ...frame(),
      order: chosen,
      filter,
      limit: LIMIT,
      offset: offset || "",
    }),
    pollEvery(range),
  );
  const sort = (next: string) => set({ order: next === orders[0]?.value ? "" : next, offset: 0 }, true);
  const emptyOf = ({ found, of }: A) => {
    if (offset > 0 && found > 0) return <PastTheEnd />;
    if (of === 0) return about.none;
    if (filter) return <Empty title={`No ${thing}s match`} />;
    if (order?.fails) return <Empty title={`No ${about.event} failed in this window`} />;
    return <Empty title={`No ${about.event} in this window`}>Choose a wider range above.</Empty>;
  };
  return (
    <>
      <Toolbar title={title} ranged />
      <div class="filters">
        <Filter label={`Filter by ${thing}`} most={200} />
        <Choice label="Order" options={orders} chosen={chosen} choose={sort} />
      </div>
      <Gate fed={fed}>
        {(answer) => {
          const { rows, found, examined, of } = answer;
          const part = examined < of ? `, from ${number(examined)} of ${number(of)} label sets` : "";
          const paging = <Paging offset={offset} total={found} />;
          return (
            <Card
              title={order?.text ?? ""}
              about={rows.length > 0 && `${placeOf(offset, rows.length, found)}${part}${about.about(answer)}`}
              actions={paging}
            >
              {rows.length === 0 ? (
                emptyOf(answer)
              ) : (
                <>
                  {about.table(answer, chosen, sort)}
                  <Timed window={answer.window} what={`${timed ?? "p95, mean and share of time"} are of`} />
                  <p class="fine">{about.note(answer)}</p>
                </>
              )}
              {rows.length > 20 && found > LIMIT && <div class="card-foot">{paging}</div>}
            </Card>
          );
        }}
      </Gate>
    </>
  );
}
