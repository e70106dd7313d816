// A group of charts: one for each unit, on one time axis, with one legend, one table and the controls for
// zoom, logarithmic axis and range.
import type { ComponentChildren } from "preact";
import type { Mark } from "../api/types";
import { useEffect, useState } from "preact/hooks";
import { coverage, durationLabel } from "../lib/ranges";
import type { Unit } from "../lib/units";
import { set, state, store, zoom } from "../state/page";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Chart } from "./chart";
import { EXPECTED, FEW, Legend, OUTSIDE } from "./legend";
import { spansDecade, together, type Expected, type Group, type Line } from "./lines";
import { keptSince } from "./retention";
import { HatchSwatch } from "./swatch";
import { shared } from "./share";
import { DataTable } from "./table";
import { Tip } from "./tip";

interface Props {
  title: string;
  /** Names its table in the address. */
  id: string;
  lines: readonly Line[];
  /** Indexes of the lines in the palette; by default, their order. */
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
  /** When alerts about it fired: [from, to). */
  firing?: readonly [number, number][];
  series?: (line: Line) => string | null;
  actions?: ComponentChildren;
  /** The unit whose lines are parts of a whole. */
  stacked?: Unit;
  /** An interval was clicked. */
  pick?: (moment: number) => void;
  /** The label of a mark was clicked. */
  pickMark?: (mark: Mark) => void;
  /** Below the charts. */
  foot?: ComponentChildren;
  /** Below the charts, small. */
  note?: string;
  /** Instead of a chart where there is nothing to draw. */
  empty: ComponentChildren;
}

const UNITS = { "": "Count", seconds: "Duration", bytes: "Bytes", ratio: "Share" } as const;

/** Pixels: of the first chart, of others, and of a share. */
const HEIGHTS = { high: 250, middle: 150, low: 110 } as const;

/** Change the zoom: whole intervals, at least two of them. */
function zoomTo(precision: number, from: number, to: number): void {
  const since = Math.max(0, Math.floor(from / precision) * precision);
  const until = Math.max(since + 2 * precision, Math.ceil(to / precision) * precision);
  zoom({ from: since, to: until });
}

export function ChartGroup(props: Props) {
  const { title, id, lines, precision, end, now, marks, empty } = props;
  const { since, log, hidden, tables, clock } = state.value;
  const [moment, point] = useState<number | null>(null);
  const last = hidden.includes(EXPECTED) ? undefined : props.expectedRange?.at(-1);
  const from = props.start;
  const to = since !== null ? end : Math.max(end, last ? last.start + precision : 0);
  const groups = together(lines);
  // For all charts or none, so that one time axis fits all.
  const brief = groups.every((group) => group.lines.length <= FEW);
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
  useEffect(() => {
    shared.value = filled ? lines : null;
  }, [lines, filled]);
  useEffect(() => () => void (shared.value = null), []);
  const logarithmic = (group: Group) =>
    (group.unit === "seconds" || group.unit === "bytes") && (log ?? spansDecade(group));
  const logs = groups.some(logarithmic);
  const open = tables.includes(id);
  const toggle = (list: "hidden" | "tables", key: string) => {
    const before = state.value[list];
    set({ [list]: before.includes(key) ? before.filter((each) => each !== key) : [...before, key] });
  };
  const actions = (
    <>
      {props.actions}
      {filled && groups.some((group) => group.unit === "seconds" || group.unit === "bytes") && (
        <button type="button" class="quiet" aria-pressed={logs} onClick={() => set({ log: !logs })}>
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
      {!filled && empty}
      {filled &&
        groups.map((group, i) => {
          const { unit, lines: some } = group;
          const oldest = keptSince(group, store.value, now);
          const unknown = oldest !== null && from <= oldest - group.precision;
          const titled = captionOf(group, props.captions?.[unit]);
          const stacked = props.stacked === unit;
          const final = i === groups.length - 1;
          const legend = (
            <Legend
              title={title}
              lines={some}
              places={some.map((line) => places[lines.indexOf(line)] ?? 0)}
              hidden={hidden}
              from={from}
              to={to}
              expected={i === 0 ? expected : null}
              toggle={(key) => toggle("hidden", key)}
              brief={brief}
              {...(i > 0 ? { of: titled } : {})}
              {...(props.series ? { series: props.series } : {})}
            />
          );
          return (
            <figure
              key={`${unit} ${group.precision} ${i}`}
              class={brief ? "figure-chart brief" : "figure-chart"}
            >
              <figcaption>
                {titled}
                {unknown && (
                  <span>
                    <HatchSwatch /> older than {coverage(oldest, group.precision, now)}: not kept by{" "}
                    {durationLabel(group.precision)}
                  </span>
                )}
              </figcaption>
              <div class="figure-row">
                {brief && legend}
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
                  height={HEIGHTS[i === 0 ? "high" : unit === "ratio" ? "low" : "middle"] - (final ? 0 : 22)}
                  axis={final}
                  from={from}
                  to={to}
                  now={now}
                  kept={unknown ? oldest : 0}
                  marks={marks}
                  firing={props.firing ?? []}
                  lane={i === 0}
                  clock={clock}
                  stacked={stacked}
                  log={logarithmic(group)}
                  zoom={(a, b) => zoomTo(precision, a, b)}
                  point={point}
                  {...(props.pick ? { pick: props.pick } : {})}
                  {...(props.pickMark ? { pickMark: props.pickMark } : {})}
                  {...(i === 0 ? overlay : {})}
                />
                {!brief && legend}
              </div>
            </figure>
          );
        })}
      {filled && moment !== null && (
        <Tip
          moment={moment}
          lines={lines}
          places={places}
          hidden={hidden}
          precision={precision}
          clock={clock}
          marks={marks}
          expectedRange={overlay.expectedRange ?? []}
        />
      )}
      {filled && props.foot}
      {filled && props.note && <p class="fine">{props.note}</p>}
      {filled && open && (
        <DataTable title={title} lines={lines} from={from} to={to} marks={marks} clock={clock} />
      )}
    </Card>
  );
}

/** "Requests per 1 min": what an axis shows, with its unit. */
function captionOf({ unit, lines, precision }: Group, named: string | undefined): string {
  const width = durationLabel(precision);
  const text = named ?? (lines.every((line) => line.kind === "gauge") ? "Value" : UNITS[unit]);
  return lines.every((line) => line.sums) ? `${text} per ${width}` : `${text}, by ${width}`;
}

/** The default for a chart without values. */
export function Nothing({ since }: { since?: string }) {
  return <Empty title="Nothing in this window">{since ?? "Choose a wider range."}</Empty>;
}
