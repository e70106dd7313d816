// The options of a chart. It is made once and fed with data: whatever may change while it stands, is
// asked of `Live` when it is drawn.
import uPlot from "uplot";
import type { Mark } from "../api/types";
import { tickOf, type Clock } from "../lib/time";
import { value as written, type Unit } from "../lib/units";
import { drawEnd, drawMarks, drawOutside, drawUnknown } from "./draw";
import { colourOf } from "./palette";

/** Distances of ticks for whole numbers. */
const WHOLE = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();
const ANY = Array.from({ length: 32 }, (_, i) =>
  [1, 2, 2.5, 5].map((each) => Number(`${each}e${i - 12}`)),
).flat();

/** What a chart asks when it is drawn. */
export interface Live {
  unit: Unit;
  /** Whether all values are whole numbers. */
  whole: boolean;
  precision: number;
  clock: Clock;
  marks: readonly Mark[];
  /** What is older than this is kept no more. */
  kept: number;
  /** Places of the lines in the palette. */
  places: readonly number[];
  /** Whether a line is switched on. */
  on: readonly boolean[];
  /** Window of the x axis. */
  from: number;
  to: number;
  outside: readonly [number, number][];
  colour: (name: string) => string;
}

export interface Shape {
  width: number;
  height: number;
  lines: number;
  log: boolean;
  /** Whether three columns follow the lines: low, mid and high of what is expected. */
  band: boolean;
  sync: string;
  /** Small charts have no axes, cursor or marks' labels. */
  small: boolean;
}

const AXIS = 56;

function lines(shape: Shape, live: Live): uPlot.Series[] {
  const series: uPlot.Series[] = [];
  for (let i = 0; i < shape.lines; i++) {
    const stroke = () => live.colour(colourOf(live.places[i] ?? i));
    const fill = (u: uPlot) => {
      const { top, height } = u.bbox;
      const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
      gradient.addColorStop(0, stroke() + "38");
      gradient.addColorStop(1, stroke() + "05");
      return gradient;
    };
    const area = i === 0 && !shape.log && !shape.band && shape.lines <= 3;
    const common = { scale: "y", stroke, width: 1.75 } satisfies uPlot.Series;
    series.push({ ...common, ...(area ? { fill } : {}), points: { show: false } });
    series.push({ ...common, dash: [4, 4], points: { show: false } });
  }
  if (shape.band) {
    const edge = {
      scale: "y",
      width: 0,
      points: { show: false },
      stroke: "transparent",
    } satisfies uPlot.Series;
    const mid = { ...edge, width: 1.25, dash: [2, 3], stroke: () => live.colour("--expected") };
    series.push({ ...edge }, mid, { ...edge });
  }
  return series;
}

/** Where points alone between gaps would be invisible as a line, they are drawn. */
export function lonely(column: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  let before: number | null = null;
  for (let i = 0; i < column.length; i++) {
    const value = column[i];
    if (value === undefined) continue;
    let next: number | null | undefined;
    for (let j = i + 1; j < column.length && next === undefined; j++) next = column[j];
    if (value !== null && before === null && (next === null || next === undefined)) found.push(i);
    before = value;
  }
  return found;
}

function yRange(live: Live, log: boolean): uPlot.Range.Function {
  return (_, low, high) => {
    if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high))
      return log ? [0.001, 1] : [0, 1];
    if (log) return uPlot.rangeLog(Math.max(low, 1e-9), Math.max(high, low, 1e-9), 10, true);
    const bottom = Math.min(0, low * 1.08);
    const least = live.unit === "" ? 1 : Number.MIN_VALUE;
    return [bottom, high <= bottom ? least : Math.max(high * 1.08, live.unit === "" ? 1 : 0)];
  };
}

export function options(
  shape: Shape,
  live: Live,
  zoom: (from: number, to: number) => void,
  cursor: (u: uPlot) => void,
): uPlot.Options {
  const muted = () => live.colour("--text-2");
  const grid = { stroke: () => live.colour("--grid"), width: 1 };
  const font = () => `11px ${live.colour("--font")}`;
  let dragging = false;
  return {
    width: shape.width,
    height: shape.height,
    ms: 1e-3,
    pxAlign: true,
    padding: shape.small ? [4, 2, 2, 2] : [8, 18, 0, 0],
    legend: { show: false },
    tzDate: (at) =>
      live.clock === "utc" || live.precision >= 86_400
        ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC")
        : new Date(at * 1000),
    scales: {
      x: { time: true, range: () => [live.from, Math.max(live.to, live.from + 1)] },
      y: { distr: shape.log ? 3 : 1, range: yRange(live, shape.log) },
    },
    axes: shape.small
      ? [{ show: false }, { show: false }]
      : [
          {
            stroke: muted,
            grid: { show: false },
            ticks: { ...grid, size: 4 },
            font: font() as string,
            size: 30,
            gap: 4,
            space: 72,
            values: (_, splits, __, ___, step) =>
              splits.map((at) => tickOf(at, step, live.precision, live.clock)),
          },
          {
            scale: "y",
            stroke: muted,
            grid,
            ticks: { show: false },
            font: font() as string,
            size: AXIS,
            gap: 6,
            space: 34,
            ...(shape.log ? {} : { incrs: () => (live.whole ? WHOLE : ANY) }),
            values: (_, splits) => splits.map((at) => (at === null ? "" : written(at, live.unit))),
          },
        ],
    series: [{}, ...lines(shape, live)],
    ...(shape.band
      ? {
          bands: [
            {
              series: [shape.lines * 2 + 3, shape.lines * 2 + 1],
              fill: () => live.colour("--expected") + "26",
            },
          ],
        }
      : {}),
    cursor: shape.small
      ? { show: false }
      : {
          drag: { x: true, y: false, setScale: false, dist: 6 },
          sync: { key: shape.sync, setSeries: false, scales: ["x", null] },
          focus: { prox: -1 },
          points: { show: false },
        },
    hooks: {
      ready: [(u) => u.over.addEventListener("pointerdown", () => (dragging = true))],
      setCursor: [cursor],
      setSelect: [
        (u) => {
          const { left, width } = u.select;
          if (!dragging || width < 6) return;
          dragging = false;
          const from = u.posToVal(left, "x");
          const to = u.posToVal(left + width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoom(from, to);
        },
      ],
      drawClear: [(u) => drawUnknown(u, live.kept, live.colour)],
      draw: [
        (u) => {
          if (!shape.small) drawMarks(u, live.marks, live.colour);
          drawOutside(u, live.outside, live.colour("--bad"));
          for (let i = 0; i < shape.lines; i++) {
            if (!live.on[i]) continue;
            const stroke = live.colour(colourOf(live.places[i] ?? i));
            for (const column of [u.data[i * 2 + 1], u.data[i * 2 + 2]]) {
              if (column) for (const at of lonely(column)) dot(u, at, column[at], stroke);
            }
            if (!shape.small) drawEnd(u, i, live.places[i] ?? i, stroke, live.colour("--surface"));
          }
        },
      ],
    },
  };
}

function dot(u: uPlot, at: number, value: number | null | undefined, fill: string): void {
  const moment = u.data[0][at];
  if (value === null || value === undefined || moment === undefined) return;
  u.ctx.fillStyle = fill;
  u.ctx.beginPath();
  u.ctx.arc(
    u.valToPos(moment, "x", true),
    u.valToPos(value, "y", true),
    2 * devicePixelRatio,
    0,
    2 * Math.PI,
  );
  u.ctx.fill();
}
