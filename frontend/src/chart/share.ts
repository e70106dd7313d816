// The charts in view as a file: their values as CSV, and their canvases as one picture.
import { signal } from "@preact/signals";
import type { Period } from "../lib/frame";
import { plain } from "../lib/text";
import { columns, touches, type Line } from "./lines";
import { css } from "./palette";

/** The lines of the chart in view; null: there is no chart. */
export const shared = signal<readonly Line[] | null>(null);

/** A cell of CSV. A text that a spreadsheet would run as a formula is quoted with an apostrophe. */
export function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** The value of the interval that begins then; undefined if none does. */
const valueOf = (line: Line, at: number) => line.values[(at - line.start) / line.precision];

/** Values by interval, the oldest first. */
export function csvOf({ from, to }: Period): string {
  const lines = shared.peek() ?? [];
  const { x } = columns(lines);
  const rows = x
    .filter((at) =>
      lines.some((line) => valueOf(line, at) !== undefined && touches(at, line.precision, from, to)),
    )
    .map((at) => [
      new Date(at * 1000).toISOString(),
      ...lines.map((line) => String(valueOf(line, at) ?? "")),
    ]);
  return [["time", ...lines.map((line) => cell(line.label))], ...rows]
    .map((row) => row.join(","))
    .join("\r\n");
}

/** All charts of the page below each other, with a title and the range. */
export function pictureOf(title: string, range: string): HTMLCanvasElement | null {
  const charts = [...document.querySelectorAll<HTMLCanvasElement>(".figure-chart canvas")];
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  if (charts.length === 0 || !context) return null;
  const ratio = devicePixelRatio;
  const [head, caption] = [48 * ratio, 22 * ratio];
  canvas.width = Math.max(...charts.map((each) => each.width));
  canvas.height = head + charts.reduce((sum, each) => sum + each.height + caption, 0);
  context.fillStyle = css("--surface", 0);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = css("--text", 0);
  context.font = `600 ${15 * ratio}px ${css("--font", 0)}`;
  context.fillText(plain(title, 120), 12 * ratio, 20 * ratio);
  context.font = `${12 * ratio}px ${css("--font", 0)}`;
  context.fillText(range, 12 * ratio, 38 * ratio);
  let y = head;
  for (const each of charts) {
    const text = each.closest("figure")?.querySelector("figcaption")?.textContent ?? "";
    context.fillText(text, 12 * ratio, y + 15 * ratio);
    context.drawImage(each, 0, y + caption);
    y += caption + each.height;
  }
  return canvas;
}
