// What is drawn over and under the lines: what lies before the retention, deploy marks, the end of
// each line, and what fell outside its band.
import type uPlot from "uplot";
import type { Mark } from "../api/types";
import { plain } from "../lib/text";
import { outline, shapeOf, type Shape } from "./palette";

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

/** Hatch what is older than what is kept. */
export function drawUnknown(u: uPlot, before: number, colour: Colour): void {
  const { left, top, height } = u.bbox;
  const edge = u.valToPos(before, "x", true);
  if (edge <= left + 1) return;
  clipped(u, (context) => {
    context.fillStyle = colour("--hatch-ground");
    context.fillRect(left, top, edge - left, height);
    context.strokeStyle = colour("--hatch");
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

/** A line for each mark, and its label where there is room. */
export function drawMarks(u: uPlot, marks: readonly Mark[], colour: Colour): void {
  const { left, top, width, height } = u.bbox;
  const ratio = devicePixelRatio;
  clipped(u, (context) => {
    context.font = `${11 * ratio}px ${colour("--font")}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    let free = left;
    for (const mark of marks) {
      const x = Math.round(u.valToPos(mark.time, "x", true)) + 0.5;
      if (x < left || x > left + width) continue;
      context.strokeStyle = colour("--mark");
      context.lineWidth = ratio;
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, top + height);
      context.stroke();
      const text = plain(mark.label, 24);
      const long = context.measureText(text).width + 10 * ratio;
      const from = Math.min(x, left + width - long);
      if (from < free) continue;
      context.fillStyle = colour("--mark");
      context.beginPath();
      context.roundRect(from, top, long, 16 * ratio, [0, 3 * ratio, 3 * ratio, 0]);
      context.fill();
      context.fillStyle = colour("--mark-text");
      context.fillText(text, from + 5 * ratio, top + 8.5 * ratio);
      free = from + long + 4 * ratio;
    }
  });
}

function shape(context: CanvasRenderingContext2D, kind: Shape, x: number, y: number, size: number): void {
  context.beginPath();
  outline(kind, x, y, size).forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)));
  context.closePath();
}

/** The shape of a line at its newest value; `index` counts lines, each of which has two columns. */
export function drawEnd(u: uPlot, index: number, place: number, stroke: string, ground: string): void {
  const columns = [u.data[index * 2 + 2], u.data[index * 2 + 1]];
  const scale = u.series[index * 2 + 1]?.scale ?? "y";
  for (const column of columns) {
    if (!column) continue;
    for (let i = column.length - 1; i >= 0; i--) {
      const value = column[i];
      const moment = u.data[0][i];
      if (value === null || value === undefined || moment === undefined) continue;
      const { min, max } = u.scales["x"] ?? {};
      if (min === undefined || max === undefined || moment < min || moment > max) return;
      const context = u.ctx;
      context.save();
      shape(
        context,
        shapeOf(place),
        u.valToPos(moment, "x", true),
        u.valToPos(value, scale, true),
        3.2 * devicePixelRatio,
      );
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

/** A ring around each value that fell outside the band. */
export function drawOutside(u: uPlot, points: readonly [number, number][], stroke: string): void {
  clipped(u, (context) => {
    context.strokeStyle = stroke;
    context.lineWidth = 1.75 * devicePixelRatio;
    for (const [moment, value] of points) {
      shape(
        context,
        "circle",
        u.valToPos(moment, "x", true),
        u.valToPos(value, "y", true),
        5 * devicePixelRatio,
      );
      context.stroke();
    }
  });
}
