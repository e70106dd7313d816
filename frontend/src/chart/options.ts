// The options of a chart. A chart is created once and fed with data: anything that changes later is read
// from `Live` when it is drawn.
import { dragByTouch } from "./touch";
import uPlot from "uplot";
import type { Mark } from "../api/types";
import { tickOf, type Clock } from "../lib/time";
import { value as written, type Unit } from "../lib/units";
import { topOfShares } from "./axis";
import {
  drawExpectedRange,
  drawEnd,
  drawFiring,
  drawMarks,
  drawOutside,
  drawUnknown,
  LANE,
  type Label,
} from "./draw";
import type { Expected } from "./lines";
import { colourOf, FAINT } from "./palette";
import { steps } from "./steps";

/** Distances of ticks for whole numbers. */
const WHOLE = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((each) => each * 10 ** power)).flat();
const ANY = Array.from({ length: 32 }, (_, i) =>
  [1, 2, 2.5, 5].map((each) => Number(`${each}e${i - 12}`)),
).flat();

/** The values that a chart reads when it is drawn. */
export interface Live {
  unit: Unit;
  /** Whether all values are whole numbers. */
  whole: boolean;
  precision: number;
  clock: Clock;
  marks: readonly Mark[];
  /** Start of the retention. */
  kept: number;
  /** Places of the lines in the palette. */
  places: readonly number[];
  /** Whether a line is switched on. */
  on: readonly boolean[];
  /** Window of the x axis. */
  from: number;
  to: number;
  /** The present, where the running interval ends. */
  now: number;
  expectedRange: readonly Expected[];
  outside: readonly [number, number][];
  firing: readonly [number, number][];
  /** Whether lines are parts of a whole. */
  stacked: boolean;
  /** Where the labels of marks were drawn. */
  labels: readonly Label[];
  colour: (name: string) => string;
}

export interface Shape {
  width: number;
  height: number;
  lines: number;
  log: boolean;
  /** Whether there is a lane for the labels of marks above the plot. */
  lane: boolean;
  sync: string;
  /** Small charts have no axes, cursor or marks' labels. */
  small: boolean;
  /** Whether the time axis is drawn. */
  axis: boolean;
}

const AXIS = 56;

function lines(shape: Shape, live: Live): uPlot.Series[] {
  const series: uPlot.Series[] = [];
  const width = () => live.precision;
  const now = () => live.now;
  for (let i = 0; i < shape.lines; i++) {
    const faint = () => live.places[i] === FAINT;
    const stroke = () => live.colour(colourOf(live.places[i] ?? i)) + (faint() ? "90" : "");
    const fill = (u: uPlot) => {
      if (live.stacked) return stroke();
      if (live.expectedRange.length > 0 || faint()) return "transparent";
      const { top, height } = u.bbox;
      const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
      gradient.addColorStop(0, stroke() + "38");
      gradient.addColorStop(1, stroke() + "05");
      return gradient;
    };
    const area = () => live.stacked || (i === 0 && !shape.log && shape.lines <= 3);
    const common = { scale: "y", stroke, width: 1.75, points: { show: false } } satisfies uPlot.Series;
    series.push({ ...common, fill, paths: steps(false, width, now, area) });
    series.push({ ...common, dash: [4, 4], paths: steps(true, width, now, () => false) });
  }
  return series;
}

function yRange(live: Live, log: boolean): uPlot.Range.Function {
  return (_, least, most) => {
    let [low, high] = [least, most];
    for (const each of live.expectedRange) {
      if (each.start + live.precision <= live.from || each.start >= live.to) continue;
      if (!log) low = Math.min(low ?? each.low, each.low);
      high = Math.max(high ?? each.high, each.high);
    }
    if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high))
      return log ? [0.001, 1] : [0, 1];
    if (log) return uPlot.rangeLog(Math.max(low, 1e-9), Math.max(high, low, 1e-9), 10, true);
    const bottom = Math.min(0, low * 1.08);
    if (live.unit === "ratio" && low >= 0 && high <= 1) return [0, topOfShares(high)];
    return [
      bottom,
      high <= bottom
        ? live.unit === ""
          ? 1
          : Number.MIN_VALUE
        : Math.max(high * 1.08, live.unit === "" ? 1 : 0),
    ];
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
    padding: shape.small ? [4, 2, 2, 2] : [shape.lane ? LANE : 8, 28, 0, 0],
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
            ticks: { ...grid, size: 4, show: shape.axis },
            font: font() as string,
            size: shape.axis ? 30 : 8,
            gap: 4,
            space: 72,
            values: (_, splits, __, ___, step) =>
              splits.map((at) => (shape.axis ? tickOf(at, step, live.precision, live.clock) : "")),
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
    cursor: shape.small
      ? { show: false }
      : {
          drag: { x: true, y: false, setScale: false, dist: 6 },
          sync: { key: shape.sync, setSeries: false, scales: ["x", null] },
          focus: { prox: -1 },
          points: { show: false },
        },
    hooks: {
      ready: [
        (u) => {
          u.over.addEventListener("pointerdown", () => (dragging = true));
          dragByTouch(u.over);
        },
      ],
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
      drawClear: [
        (u) => {
          drawUnknown(u, live.kept, live.colour);
          drawFiring(u, live.firing, live.colour("--bad"));
          drawExpectedRange(u, live.expectedRange, live.precision, live.colour);
        },
      ],
      draw: [
        (u) => {
          const { precision, colour, now } = live;
          if (!shape.small) live.labels = drawMarks(u, live.marks, precision, shape.lane, colour);
          drawOutside(u, live.outside, precision, colour("--bad"));
          for (let i = 0; i < shape.lines && !shape.small; i++) {
            const place = live.places[i] ?? i;
            if (live.on[i] && place !== FAINT && !live.stacked)
              drawEnd(u, i, place, precision, now, colour(colourOf(place)), colour("--surface"));
          }
        },
      ],
    },
  };
}
