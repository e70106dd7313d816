// Charts that belong together: one for each unit, on one time axis, with one legend and one table,
// and what can be done with them: zoom, a logarithmic axis, another range.
import type { ComponentChildren } from "preact";
import type { Mark } from "../api/types";
import { durationLabel, finest } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { seconds } from "../lib/units";
import { kept as keptRanges, set, state, store } from "../state/page";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Chart, type Band } from "./chart";
import { Legend } from "./legend";
import { byUnit, type Line } from "./lines";
import { DataTable } from "./table";

interface Props {
  title: string;
  /** Names its table in the address. */
  id: string;
  lines: readonly Line[];
  precision: number;
  /** The window: [start, end). */
  start: number;
  end: number;
  now: number;
  marks: readonly Mark[];
  band?: readonly Band[];
  outside?: readonly [number, number][];
  series?: (line: Line) => string | null;
  actions?: ComponentChildren;
  height?: number;
  /** Instead of a chart where there is nothing to draw. */
  empty: ComponentChildren;
}

const UNITS = { "": "Counts", seconds: "Durations", bytes: "Bytes", ratio: "Shares" } as const;

/** Change the zoom: whole slices, at least two of them. */
function zoomTo(precision: number, from: number, to: number): void {
  const since = Math.max(0, Math.floor(from / precision) * precision);
  const until = Math.max(since + 2 * precision, Math.ceil(to / precision) * precision);
  set({ since, until }, true);
}

export function ChartGroup(props: Props) {
  const { title, id, lines, precision, end, now, marks, empty } = props;
  const { since, until, log, hidden, tables, clock } = state.value;
  const zoomed = since !== null && until !== null;
  const ahead = props.band?.at(-1)?.start ?? 0;
  const from = since ?? props.start;
  // The last slice begins one width before the end.
  const to = until ?? Math.max(end - precision, ahead);
  const samples = store.value?.retention[String(precision)];
  const oldest = samples === undefined ? 0 : now - samples * precision;
  const better = zoomed ? finest(keptRanges.value, since, now) : undefined;
  const groups = byUnit(lines);
  const filled = lines.some((line) => line.values.length > 0);
  const open = tables.includes(id);
  const toggle = (list: "hidden" | "tables", key: string) => {
    const before = state.value[list];
    set({ [list]: before.includes(key) ? before.filter((each) => each !== key) : [...before, key] });
  };
  const actions = (
    <>
      {props.actions}
      {groups.some((group) => group.unit !== "") && (
        <button type="button" class="quiet" aria-pressed={log} onClick={() => set({ log: !log })}>
          Log axis
        </button>
      )}
      <button type="button" class="quiet" aria-pressed={open} onClick={() => toggle("tables", id)}>
        Table
      </button>
    </>
  );
  return (
    <Card title={title} class="charts" actions={filled && actions}>
      {zoomed && (
        <p class="notice">
          <span>
            {momentOf(since, clock)} to {momentOf(until, clock)}, {seconds(until - since)}.
          </span>
          {since < oldest && (
            <span>The hatched part is older than what is kept by {durationLabel(precision)}.</span>
          )}
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
        groups.map(({ unit, lines: some }, i) => {
          const places = some.map((line) => lines.indexOf(line));
          return (
            <figure key={unit} class="figure-chart">
              {groups.length > 1 && <figcaption>{UNITS[unit]}</figcaption>}
              <Chart
                title={`${title}: ${some
                  .map((line) => line.label)
                  .join(", ")
                  .slice(0, 200)}`}
                lines={some}
                places={places}
                hidden={hidden}
                unit={unit}
                precision={precision}
                height={props.height ?? (i === 0 ? 240 : 150)}
                from={from}
                to={to}
                kept={zoomed ? oldest : 0}
                marks={marks}
                clock={clock}
                log={log && unit !== ""}
                zoom={(a, b) => zoomTo(precision, a, b)}
                {...(i === 0 && props.band ? { band: props.band } : {})}
                {...(i === 0 && props.outside ? { outside: props.outside } : {})}
              />
            </figure>
          );
        })}
      {filled && (
        <Legend
          title={title}
          lines={lines}
          places={lines.map((_, i) => i)}
          hidden={hidden}
          from={from}
          to={to}
          toggle={(key) => toggle("hidden", key)}
          {...(props.series ? { series: props.series } : {})}
        />
      )}
      {filled && open && (
        <DataTable
          title={title}
          lines={lines}
          precision={precision}
          from={from}
          to={to}
          marks={marks}
          clock={clock}
        />
      )}
    </Card>
  );
}

/** The usual words for a chart without values. */
export function Nothing({ since }: { since?: string }) {
  return <Empty title="Nothing in this window">{since ?? "Choose a wider range, or count something."}</Empty>;
}
