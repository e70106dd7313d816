// Charts that belong together: one for each unit, on one time axis, with one legend and one table,
// and what can be done with them: zoom, a logarithmic axis, another range.
import type { ComponentChildren } from "preact";
import type { Mark } from "../api/types";
import { coverage, durationLabel, finest } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { seconds, type Unit } from "../lib/units";
import { kept as keptRanges, set, state, store } from "../state/page";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Chart, type Expected } from "./chart";
import { EXPECTED, Legend, OUTSIDE } from "./legend";
import { together, type Line } from "./lines";
import { keptSince } from "./retention";
import { HatchSwatch } from "./swatch";
import { DataTable } from "./table";

interface Props {
  title: string;
  /** Names its table in the address. */
  id: string;
  lines: readonly Line[];
  /** Places of the lines in the palette; their own order where there are none. */
  places?: readonly number[];
  /** Captions of the charts of some units. */
  captions?: Partial<Record<Unit, string>>;
  precision: number;
  /** The window: [start, end). */
  start: number;
  end: number;
  now: number;
  marks: readonly Mark[];
  expectedRange?: readonly Expected[];
  outside?: readonly [number, number][];
  series?: (line: Line) => string | null;
  actions?: ComponentChildren;
  /** Below the legend, small. */
  note?: string;
  /** Instead of a chart where there is nothing to draw. */
  empty: ComponentChildren;
}

const UNITS = { "": "Count", seconds: "Time", bytes: "Bytes", ratio: "Share" } as const;

/** Pixels: of the first chart, of others, and of a share. */
const HEIGHTS = { high: 250, middle: 150, low: 110 } as const;

/** Change the zoom: whole intervals, at least two of them. */
function zoomTo(precision: number, from: number, to: number): void {
  const since = Math.max(0, Math.floor(from / precision) * precision);
  const until = Math.max(since + 2 * precision, Math.ceil(to / precision) * precision);
  set({ since, until }, true);
}

export function ChartGroup(props: Props) {
  const { title, id, lines, precision, end, now, marks, empty } = props;
  const { since, until, log, hidden, tables, clock } = state.value;
  const zoomed = since !== null && until !== null;
  const last = hidden.includes(EXPECTED) ? undefined : props.expectedRange?.at(-1);
  const from = since ?? props.start;
  const to = until ?? Math.max(end, last ? last.start + precision : 0);
  const better = zoomed ? finest(keptRanges.value, since, now) : undefined;
  const groups = together(lines);
  const places = props.places ?? lines.map((_, i) => i);
  // The first chart has the expected range.
  const seen = (start: number) => start >= from && start < to && start + precision <= now;
  const expected = props.expectedRange
    ? {
        known: props.expectedRange.filter((each) => seen(each.start)).length,
        outside: (props.outside ?? []).filter(([start]) => seen(start)).length,
      }
    : null;
  const overlay = {
    ...(props.expectedRange && !hidden.includes(EXPECTED) ? { expectedRange: props.expectedRange } : {}),
    ...(props.outside && !hidden.includes(OUTSIDE) ? { outside: props.outside } : {}),
  };
  const filled = lines.some((line) => line.values.length > 0);
  const open = tables.includes(id);
  const toggle = (list: "hidden" | "tables", key: string) => {
    const before = state.value[list];
    set({ [list]: before.includes(key) ? before.filter((each) => each !== key) : [...before, key] });
  };
  const actions = (
    <>
      {props.actions}
      {filled && groups.some((group) => group.unit === "seconds" || group.unit === "bytes") && (
        <button type="button" class="quiet" aria-pressed={log} onClick={() => set({ log: !log })}>
          Log axis
        </button>
      )}
      {filled && (
        <button type="button" class="quiet" aria-pressed={open} onClick={() => toggle("tables", id)}>
          Table
        </button>
      )}
    </>
  );
  return (
    <Card title={title} class="charts" actions={actions}>
      {zoomed && (
        <p class="notice">
          <span>
            {momentOf(since, clock)} to {momentOf(until, clock)}, {seconds(until - since)}.
          </span>
          {better && better.precision !== precision && (
            <button type="button" class="quiet" onClick={() => set({ range: better.precision }, true)}>
              Show by {better.step}
            </button>
          )}
          <button type="button" class="quiet" onClick={() => set({ since: null, until: null }, true)}>
            Reset zoom
          </button>
        </p>
      )}
      {!filled && empty}
      {filled &&
        groups.map((group, i) => {
          const { unit, lines: some } = group;
          const oldest = keptSince(group, store.value, now);
          const unknown = oldest !== null && from <= oldest - group.precision;
          const titled = groups.length > 1 || group.precision !== state.value.range || unknown;
          return (
            <figure key={`${unit} ${group.precision}`} class="figure-chart">
              {titled && (
                <figcaption>
                  {props.captions?.[unit] ?? UNITS[unit]}
                  {group.precision !== state.value.range && ` by ${durationLabel(group.precision)}`}
                  {unknown && (
                    <span>
                      <HatchSwatch /> older than {coverage(oldest, group.precision, now)}: not kept by{" "}
                      {durationLabel(group.precision)}
                    </span>
                  )}
                </figcaption>
              )}
              <Chart
                title={`${title}: ${some
                  .map((line) => line.label)
                  .join(", ")
                  .slice(0, 200)}`}
                lines={some}
                places={some.map((line) => places[lines.indexOf(line)] ?? 0)}
                hidden={hidden}
                unit={unit}
                precision={group.precision}
                height={HEIGHTS[unit === "ratio" && i > 0 ? "low" : i > 0 ? "middle" : "high"]}
                from={from}
                to={to}
                now={now}
                kept={unknown ? oldest : 0}
                marks={marks}
                lane={i === 0}
                clock={clock}
                log={log && (unit === "seconds" || unit === "bytes")}
                zoom={(a, b) => zoomTo(precision, a, b)}
                {...(i === 0 ? overlay : {})}
              />
            </figure>
          );
        })}
      {filled && (
        <Legend
          title={title}
          lines={lines}
          places={places}
          hidden={hidden}
          from={from}
          to={to}
          expected={expected}
          toggle={(key) => toggle("hidden", key)}
          {...(props.series ? { series: props.series } : {})}
        />
      )}
      {filled && props.note && <p class="fine">{props.note}</p>}
      {filled && open && (
        <DataTable title={title} lines={lines} from={from} to={to} marks={marks} clock={clock} />
      )}
    </Card>
  );
}

/** The usual words for a chart without values. */
export function Nothing({ since }: { since?: string }) {
  return <Empty title="Nothing in this window">{since ?? "Choose a wider range, or count something."}</Empty>;
}
