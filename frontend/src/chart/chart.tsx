// One chart: uPlot, held by a component. It is made when its shape changes, fed when its data do, and
// destroyed with the component, so that a page that is watched for days does not grow.
import uPlot from "uplot";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Mark } from "../api/types";
import type { Clock } from "../lib/time";
import { hovering, palette } from "../state/page";
import { columns, indexAt, type Expected, type Line } from "./lines";
import { options, type Live } from "./options";
import { css } from "./palette";
import { LANE, type Label } from "./draw";
import { describe } from "./describe";
import type { Unit } from "../lib/units";

export interface ChartProps {
  title: string;
  lines: readonly Line[];
  /** Indexes of the lines in the palette; by default, their order. */
  places?: readonly number[];
  hidden?: readonly string[];
  unit: Unit;
  precision: number;
  height: number;
  from: number;
  to: number;
  /** The present, where the running interval ends. */
  now: number;
  /** Start of the retention; earlier times are hatched. Nothing is hatched without it. */
  kept?: number;
  marks?: readonly Mark[];
  /** Whether there is a lane above the plot for the labels of marks. */
  lane?: boolean;
  expectedRange?: readonly Expected[];
  outside?: readonly [number, number][];
  /** When alerts about it fired: [from, to). */
  firing?: readonly [number, number][];
  clock: Clock;
  log?: boolean;
  sync?: string;
  small?: boolean;
  /** Whether the time axis is drawn; only the last of several charts needs one. */
  axis?: boolean;
  /** Whether lines are parts of a whole: each is drawn on top of those after it. */
  stacked?: boolean;
  zoom?: (from: number, to: number) => void;
  /** The interval that the cursor is in; null: it has left. */
  point?: (moment: number | null) => void;
  /** An interval was clicked, or Enter was pressed in it. */
  pick?: (moment: number) => void;
  /** The label of a mark, above the plot, was clicked. */
  pickMark?: (mark: Mark) => void;
}

const NONE: readonly never[] = [];

/** The columns of a chart, in the order of the options' series. */
function dataOf(props: ChartProps, log: boolean): uPlot.AlignedData {
  const expectedRange = props.expectedRange ?? NONE;
  const { x, y } = columns(
    props.lines,
    expectedRange.map((each) => each.start),
  );
  const hidden = props.hidden ?? NONE;
  const all = y.map((column, i) => {
    const line = props.lines[Math.floor(i / 2)];
    if (line && hidden.includes(line.key)) return column.map(() => undefined);
    return log ? column.map((value) => (typeof value === "number" && value <= 0 ? null : value)) : column;
  });
  if (props.stacked) stack(all);
  return [x, ...all] as uPlot.AlignedData;
}

/** Add to each column those of the lines after it; a line has two columns. */
function stack(all: (number | null | undefined)[][]): void {
  for (let i = all.length - 3; i >= 0; i--) {
    all[i] = (all[i] ?? []).map((value, at) => {
      const above = all[i + 2]?.[at];
      return typeof value === "number" ? value + (above ?? 0) : (above ?? value);
    });
  }
}

export function Chart(props: ChartProps) {
  const { lines, height, sync = "page", small = false } = props;
  const hidden = props.hidden ?? NONE;
  const log = (props.log ?? false) && !small;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [width, setWidth] = useState(0);
  const point = useRef(props.point);
  point.current = props.point;
  // Screen readers announce keyboard moves only, not the mouse's.
  const [spoken, speak] = useState("");
  const zoom = useRef(props.zoom);
  zoom.current = props.zoom;

  const places = props.places ?? lines.map((_, i) => i);
  const live = useMemo<Live>(() => ({}) as Live, []);
  Object.assign(live, {
    unit: props.unit,
    whole: lines.every((line) => line.sums),
    precision: props.precision,
    clock: props.clock,
    marks: props.marks ?? NONE,
    kept: props.kept ?? 0,
    places,
    on: lines.map((line) => !hidden.includes(line.key)),
    from: props.from,
    to: props.to,
    now: props.now,
    expectedRange: props.expectedRange ?? NONE,
    outside: props.outside ?? NONE,
    firing: props.firing ?? NONE,
    stacked: props.stacked ?? false,
    labels: live.labels ?? [],
    colour: (name: string) => css(name, palette.peek()),
  } satisfies Live);

  const lane = props.lane ?? false;
  const axis = props.axis ?? true;
  const data = useMemo(() => dataOf(props, log), [lines, hidden, props.expectedRange, log, props.stacked]);
  const latest = useRef(data);
  latest.current = data;
  const count = lines.length;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = box.current;
    if (!element || width < 40) return;
    const shape = { width, height, lines: count, log, lane, sync, small, axis };
    const made = new uPlot(
      options(
        shape,
        live,
        (from, to) => zoom.current?.(from, to),
        (u) => point.current?.(u.data[0][pointedAt(u)] ?? null),
      ),
      latest.current,
      element,
    );
    chart.current = made;
    return () => {
      chart.current = null;
      made.destroy();
    };
  }, [width > 40, height, count, log, lane, sync, small, axis]);

  useEffect(() => {
    if (chart.current && width > 40 && chart.current.width !== width)
      chart.current.setSize({ width, height });
  }, [width]);
  // Not with every rendering: fed with data, a chart reports its cursor, which is rendered.
  useEffect(
    () => chart.current?.setData(data),
    [
      data,
      props.from,
      props.to,
      props.now,
      props.marks,
      props.outside,
      props.firing,
      props.clock,
      props.precision,
    ],
  );
  // The selection is drawn on all charts of the group, so each one clears its own.
  useEffect(
    () => chart.current?.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false),
    [props.from, props.to],
  );
  useEffect(() => palette.subscribe(() => chart.current?.redraw(false, true)), []);
  useEffect(() => () => void (hovering.value = false), []);

  return (
    <div
      class={small ? "chart small" : "chart"}
      ref={box}
      {...(small
        ? { "aria-hidden": true }
        : {
            role: "group",
            tabIndex: 0,
            "aria-label": `${props.title}. Arrow keys move through the intervals, plus and minus zoom.`,
          })}
      style={{ height: `${height}px` }}
      onPointerEnter={(event) => event.pointerType === "mouse" && !small && (hovering.value = true)}
      onPointerLeave={() => !small && (hovering.value = false)}
      onClick={(event) => {
        const u = chart.current;
        const moment = u ? u.data[0][pointedAt(u)] : undefined;
        const label = u ? labelAt(u, live, event) : undefined;
        // A label that stands for several marks zooms to them; those of one interval stay together.
        if (label && label.mark.time - label.oldest >= props.precision)
          props.zoom?.(label.oldest - props.precision, label.mark.time + 2 * props.precision);
        else if (label) props.pickMark?.(label.mark);
        else if (moment !== undefined) props.pick?.(moment);
      }}
      onKeyDown={(event) => {
        if (small || !chart.current) return;
        const at = chart.current.data[0][pointedAt(chart.current)];
        if (event.key === "Enter" && at !== undefined) props.pick?.(at);
        const moment = steer(event, chart.current, props);
        if (moment === null) return;
        const shown = lines.filter((line) => !hidden.includes(line.key));
        speak(
          describe(
            moment,
            shown,
            props.precision,
            props.clock,
            props.marks ?? NONE,
            props.expectedRange ?? NONE,
          ),
        );
      }}
      onBlur={() => {
        if (small) return;
        chart.current?.setCursor({ left: -10, top: -10 });
        speak("");
      }}
    >
      {!small && (
        <p class="away" aria-live="polite">
          {spoken}
        </p>
      )}
    </div>
  );
}

/** The label that is there. */
function labelAt(u: uPlot, { labels }: Live, event: MouseEvent): Label | undefined {
  const box = u.ctx.canvas.getBoundingClientRect();
  const x = (event.clientX - box.left) * devicePixelRatio;
  const y = (event.clientY - box.top) * devicePixelRatio;
  const top = u.bbox.top;
  if (y > top || y < top - LANE * devicePixelRatio) return undefined;
  return labels.find(({ from, width }) => x >= from && x < from + width);
}

/** The index of the interval that the cursor is in; -1: of none. */
function pointedAt(u: uPlot): number {
  const { left } = u.cursor;
  return left === undefined || left < 0 ? -1 : indexAt(u.data[0], u.posToVal(left, "x"));
}

/** The keyboard's way: an interval to the left or right, zoom in and out around it. The start of the interval
 * that it moved to, null where it did not. */
function steer(event: KeyboardEvent, u: uPlot, props: ChartProps): number | null {
  const x = u.data[0];
  const seen = [...x.keys()].filter((i) => (x[i] ?? 0) >= props.from && (x[i] ?? 0) < props.to);
  const first = seen[0];
  const last = seen.at(-1);
  if (first === undefined || last === undefined || event.ctrlKey || event.metaKey || event.altKey)
    return null;
  const pointed = pointedAt(u);
  const at = pointed < 0 ? last : pointed;
  const step = event.shiftKey ? 10 : 1;
  const moves: Record<string, number> = {
    ArrowLeft: at - step,
    ArrowRight: at + step,
    Home: first,
    End: last,
  };
  const to = moves[event.key];
  let moved: number | null = null;
  if (to !== undefined) {
    moved = x[Math.min(last, Math.max(first, to))] ?? 0;
    const middle = Math.min(moved + props.precision / 2, (moved + props.to) / 2);
    u.setCursor({ left: u.valToPos(middle, "x"), top: u.over.clientHeight / 2 }, true);
  } else if ((event.key === "+" || event.key === "=" || event.key === "-") && props.zoom) {
    const half = ((props.to - props.from) / 2) * (event.key === "-" ? 2 : 0.5);
    const middle = x[at] ?? (props.from + props.to) / 2;
    props.zoom(middle - half, middle + half);
  } else return null;
  event.preventDefault();
  return moved;
}
