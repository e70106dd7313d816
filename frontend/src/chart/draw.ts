// Drawn over and under the lines: the time before the retention, the expected range, deploy marks,
// the end of each line, and anomalies.
import type uPlot from "uplot";
import type { Mark } from "../api/types";
import { plain } from "../lib/text";
import { lane } from "./lane";
import type { Expected } from "./lines";
import { outline, shapeOf, type Shape } from "./palette";
import { endOf } from "./steps";

/** Height of the lane of labels, above the plot. */
export const LANE = 22;

type Colour = (name: string) => string;

function clipped(u: uPlot, draw: (context: CanvasRenderingContext2D) => void): void {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  draw(u.ctx);
  u.ctx.restore();
}

/** Hatch the time before the retention. */
export function drawUnknown(u: uPlot, before: number, colour: Colour): void {
  const { left, top, height } = u.bbox;
  const edge = Math.min(u.valToPos(before, "x", true), left + u.bbox.width);
  if (edge <= left + 1) return;
  clipped(u, (context) => {
    context.fillStyle = colour("--hatch-ground");
    context.fillRect(left, top, edge - left, height);
    context.strokeStyle = colour("--hatch");
    context.setLineDash([]);
    context.lineWidth = devicePixelRatio;
    context.beginPath();
    const step = 8 * devicePixelRatio;
    context.rect(left, top, edge - left, height);
    context.clip();
    context.beginPath();
    for (let x = left - height; x < edge; x += step) {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    }
    context.stroke();
  });
}

/** Shade the times at which alerts fired, below a solid edge. */
export function drawFiring(u: uPlot, periods: readonly [number, number][], colour: string): void {
  clipped(u, (context) => {
    const { top, height } = u.bbox;
    for (const [from, to] of periods) {
      const left = u.valToPos(from, "x", true);
      const width = Math.max(2 * devicePixelRatio, u.valToPos(to, "x", true) - left);
      context.fillStyle = colour + "1f";
      context.fillRect(left, top, width, height);
      context.fillStyle = colour;
      context.fillRect(left, top, width, 3 * devicePixelRatio);
    }
  });
}

/** The expected range of each interval, and its middle. */
export function drawExpectedRange(
  u: uPlot,
  expectedRange: readonly Expected[],
  width: number,
  colour: Colour,
): void {
  if (expectedRange.length === 0) return;
  clipped(u, (context) => {
    const x = (moment: number) => Math.round(u.valToPos(moment, "x", true));
    const y = (value: number) => u.valToPos(value, "y", true);
    context.fillStyle = colour("--expected") + "26";
    for (const { start, low, high } of expectedRange) {
      const left = x(start);
      context.fillRect(left, y(high), x(start + width) - left, y(low) - y(high));
    }
    context.strokeStyle = colour("--expected");
    context.lineWidth = 1.25 * devicePixelRatio;
    context.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    context.beginPath();
    expectedRange.forEach(({ start, mid }, i) => {
      if (i > 0 && expectedRange[i - 1]?.start === start - width) context.lineTo(x(start), y(mid));
      else context.moveTo(x(start), y(mid));
      context.lineTo(x(start + width), y(mid));
    });
    context.stroke();
  });
}

/** The label of a mark: its edge and width, pixels of the canvas. */
export interface Label {
  mark: Mark;
  /** Time of the oldest mark that it stands for. */
  oldest: number;
  from: number;
  width: number;
}

/** Draw a line for each mark, at the start of its interval, so that its effects are to the right. Labels are in
 * the lane above the plot, if there is one; their positions are returned. */
export function drawMarks(
  u: uPlot,
  marks: readonly Mark[],
  width: number,
  labelled: boolean,
  colour: Colour,
): Label[] {
  const labels: Label[] = [];
  const { left, top, width: wide, height } = u.bbox;
  const ratio = devicePixelRatio;
  const context = u.ctx;
  const seen = marks
    .map((mark) => ({
      mark,
      x: Math.round(u.valToPos(Math.floor(mark.time / width) * width, "x", true)) + 0.5,
      text: plain(mark.label, 24),
    }))
    .filter(({ x }) => x >= left && x <= left + wide)
    .sort((a, b) => a.x - b.x);
  context.save();
  context.setLineDash([]);
  context.strokeStyle = colour("--mark");
  context.lineWidth = ratio;
  for (const { x } of seen) {
    context.beginPath();
    context.moveTo(x, labelled ? top - 6 * ratio : top);
    context.lineTo(x, top + height);
    context.stroke();
  }
  if (labelled) {
    context.font = `${11 * ratio}px ${colour("--font")}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const widths = seen.map(({ text }) => context.measureText(text).width + 10 * ratio);
    const places = lane(
      seen.map(({ x }) => x),
      widths,
      left,
      left + wide,
      22 * ratio,
    );
    for (const { index, from, width: long, more } of places) {
      const y = top - (LANE - 3) * ratio;
      context.fillStyle = colour("--mark");
      context.beginPath();
      context.roundRect(from, y, long, 16 * ratio, 3 * ratio);
      context.fill();
      context.fillStyle = colour("--mark-text");
      const text = `${seen[index]?.text ?? ""}${more > 0 ? ` +${more}` : ""}`;
      context.fillText(text, from + 5 * ratio, y + 8.5 * ratio, long - 6 * ratio);
      const mark = seen[index]?.mark;
      if (mark) labels.push({ mark, oldest: seen[index - more]?.mark.time ?? mark.time, from, width: long });
    }
  }
  context.restore();
  return labels;
}

function shape(context: CanvasRenderingContext2D, kind: Shape, x: number, y: number, size: number): void {
  context.beginPath();
  outline(kind, x, y, size).forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)));
  context.closePath();
}

/** The shape of a line where its newest interval ends; `index` counts lines, each of which has two columns. */
export function drawEnd(
  u: uPlot,
  index: number,
  place: number,
  width: number,
  now: number,
  stroke: string,
  ground: string,
): void {
  const { min, max } = u.scales["x"] ?? {};
  for (const column of [u.data[index * 2 + 2], u.data[index * 2 + 1]]) {
    for (let i = (column?.length ?? 0) - 1; i >= 0; i--) {
      const value = column?.[i];
      const start = u.data[0][i];
      if (value === null || value === undefined || start === undefined) continue;
      const end = endOf(start, width, now);
      if (min === undefined || max === undefined || end < min || end > max) return;
      const context = u.ctx;
      const at = [u.valToPos(end, "x", true), u.valToPos(value, "y", true)] as const;
      context.save();
      context.setLineDash([]);
      shape(context, shapeOf(place), ...at, 3.2 * devicePixelRatio);
      context.fillStyle = stroke;
      context.strokeStyle = ground;
      context.lineWidth = 1.5 * devicePixelRatio;
      context.stroke();
      context.fill();
      context.restore();
      return;
    }
  }
}

/** A ring around each anomaly. */
export function drawOutside(
  u: uPlot,
  points: readonly [number, number][],
  width: number,
  stroke: string,
): void {
  clipped(u, (context) => {
    context.strokeStyle = stroke;
    context.setLineDash([]);
    context.lineWidth = 1.75 * devicePixelRatio;
    for (const [moment, value] of points) {
      shape(
        context,
        "circle",
        u.valToPos(moment + width / 2, "x", true),
        u.valToPos(value, "y", true),
        5 * devicePixelRatio,
      );
      context.stroke();
    }
  });
}
