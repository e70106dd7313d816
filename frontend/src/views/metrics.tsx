// All counters, gauges and histograms, by name, by count or by change, a page at a time.
import { nearest } from "../lib/ranges";
import { Choice } from "../parts/choice";
import { Filter } from "../parts/paging";
import { Toolbar } from "../parts/toolbar";
import { kept, set, state, zoom } from "../state/page";
import { KINDS } from "./names";
import { ORDERS, SeriesList } from "./serieslist";

const CHOICES = [{ value: "all", text: "All" }, ...KINDS] as const;

export function Metrics() {
  const order = ORDERS.find((each) => each.value === state.value.order)?.value ?? "name";
  const kind = CHOICES.find((each) => each.value === state.value.kind)?.value ?? "counter";
  return (
    <>
      <Toolbar title="Metrics" ranged />
      <div class="filters">
        <Filter label="Filter by name" most={512} />
        <Choice
          label="Kind"
          options={CHOICES}
          chosen={kind}
          choose={(value) => set({ kind: value === "counter" ? "" : value, offset: 0 }, true)}
        />
        <Choice
          label="Order"
          options={ORDERS}
          chosen={order}
          choose={(value) => set({ order: value === "name" ? "" : value, offset: 0 }, true)}
        />
      </div>
      {KINDS.filter((each) => kind === "all" || kind === each.value).map(({ value }) => (
        <SeriesList key={value} kind={value} order={order} among={kind === "all"} />
      ))}
      <Silent />
    </>
  );
}

/** The range of the list, which leaves out inactive series, and a way to widen it. */
function Silent() {
  const { range } = state.value;
  const at = nearest(kept.value, range);
  const widest = kept.value.at(-1);
  if (!at || !widest) return null;
  if (widest === at) return <p class="fine">Active in the last {at.label}.</p>;
  return (
    <p class="fine">
      Active in the last {at.label}.{" "}
      <button type="button" class="quiet" onClick={() => zoom(null, { range: widest.precision, last: null })}>
        Show the last {widest.label}
      </button>
    </p>
  );
}
