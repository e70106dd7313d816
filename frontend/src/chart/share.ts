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

/** The lines of a legend that are shown: their names with their colors. */
function entriesOf(figure: Element | null): { text: string; color: string }[] {
  return [...(figure?.querySelectorAll(".legend tbody tr:not(.off)") ?? [])].map((row) => {
    const swatch = row.querySelector(".swatch");
    return {
      text: plain(row.querySelector("label")?.textContent ?? "", 60),
      color: swatch ? getComputedStyle(swatch).color : "",
    };
  });
}

/** The positions of texts side by side: [from the left, line] of each. */
export function flow(widths: readonly number[], most: number): [number, number][] {
  let [x, line] = [0, 0];
  return widths.map((width) => {
    if (x > 0 && x + width > most) [x, line] = [0, line + 1];
    const at: [number, number] = [x, line];
    x += width;
    return at;
  });
}

/** All charts of the page below each other, each with its legend, with a title and the range. */
export function pictureOf(title: string, range: string): HTMLCanvasElement | null {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const found = [...document.querySelectorAll<HTMLCanvasElement>(".figure-chart canvas")];
  if (found.length === 0 || !context) return null;
  const ratio = devicePixelRatio;
  const [head, caption, swatch, edge] = [48 * ratio, 22 * ratio, 24 * ratio, 12 * ratio];
  const width = Math.max(...found.map((each) => each.width));
  const font = `${12 * ratio}px ${css("--font", 0)}`;
  context.font = font;
  const charts = found.map((chart) => {
    const figure = chart.closest("figure");
    const entries = entriesOf(figure);
    const sizes = entries.map(({ text }) => swatch + context.measureText(text).width + 16 * ratio);
    const places = flow(sizes, width - 2 * edge);
    const above = caption * (2 + (places.at(-1)?.[1] ?? -1));
    return { chart, text: figure?.querySelector("figcaption")?.textContent ?? "", entries, places, above };
  });
  canvas.width = width;
  canvas.height = head + charts.reduce((sum, { chart, above }) => sum + chart.height + above, 0);
  context.fillStyle = css("--surface", 0);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = css("--text", 0);
  context.font = `600 ${15 * ratio}px ${css("--font", 0)}`;
  context.fillText(plain(title, 120), edge, 20 * ratio);
  context.font = font;
  context.fillText(range, edge, 38 * ratio);
  let y = head;
  for (const { chart, text, entries, places, above } of charts) {
    context.fillText(text, edge, y + 15 * ratio);
    entries.forEach((entry, i) => {
      const [x = 0, line = 0] = places[i] ?? [];
      const top = y + caption * (line + 1);
      context.fillStyle = entry.color;
      context.fillRect(edge + x, top + 9 * ratio, 16 * ratio, 3 * ratio);
      context.fillStyle = css("--text", 0);
      context.fillText(entry.text, edge + x + swatch, top + 15 * ratio);
    });
    context.drawImage(chart, 0, y + above);
    y += above + chart.height;
  }
  return canvas;
}
