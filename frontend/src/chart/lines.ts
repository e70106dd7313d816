// Converts series to columns for the chart. An interval without a value is a gap; an interval that a series
// lacks because its own intervals are wider is not. The newest interval of a series is still running, so the
// step to it is a column of its own, which is drawn dashed.
import type { Series } from "../api/types";
import { unitOf, type Unit } from "../lib/units";

export interface Line {
  /** Identifies the line in the URL and in the legend. */
  key: string;
  label: string;
  unit: Unit;
  /** The kind of its series; histograms have a retention of their own. */
  kind: Series["kind"];
  /** Whether its values can be summed. */
  sums: boolean;
  precision: number;
  start: number;
  values: readonly (number | null)[];
  partial: boolean;
}

/** The range in which a value is expected, by the forecast. */
export interface Expected {
  start: number;
  low: number;
  mid: number;
  high: number;
}

/** Largest ratio of two lines that share an axis. */
const APART = 30;

/** null: a gap. undefined: nothing is expected here. */
export type Cell = number | null | undefined;

export interface Columns {
  x: number[];
  /** Two for each line: the complete intervals, and the step to the running one. */
  y: Cell[][];
}

/** A line from a series of the API; for a histogram, its p95. */
export function lineOf(series: Series, label = series.name): Line {
  const shown = series.kind === "histogram" && label === series.name ? `${label} p95` : label;
  return {
    key: shown,
    label: shown,
    unit: unitOf(series.name),
    kind: series.kind,
    sums: series.kind === "counter",
    precision: series.precision,
    start: series.start,
    values: series.values,
    partial: series.partial,
  };
}

export function columns(lines: readonly Line[], more: readonly number[] = []): Columns {
  const moments = new Set<number>(more);
  for (const line of lines) {
    for (let i = 0; i < line.values.length; i++) moments.add(line.start + i * line.precision);
  }
  const x = [...moments].sort((a, b) => a - b);
  const at = new Map(x.map((moment, index) => [moment, index]));
  const y: Cell[][] = [];
  for (const line of lines) {
    const ended: Cell[] = new Array<Cell>(x.length).fill(undefined);
    const running: Cell[] = new Array<Cell>(x.length).fill(undefined);
    const last = line.values.length - 1;
    line.values.forEach((value, i) => {
      const index = at.get(line.start + i * line.precision);
      if (index === undefined) return;
      const open = line.partial && i === last;
      if (!open) ended[index] = value;
      if (line.partial && i >= last - 1) running[index] = value;
    });
    y.push(ended, running);
  }
  return { x, y };
}

export interface Figures {
  /** Value of the newest complete interval. */
  last: number | null;
  /** Value of the running interval; null if there is none. */
  running: number | null;
  low: number | null;
  high: number | null;
  /** null if values cannot be summed. */
  sum: number | null;
}

/** Whether an interval touches [from, to). The window has whole intervals; those of a line can be wider. */
export const touches = (start: number, precision: number, from: number, to: number) =>
  start + precision > from && start < to;

/** The legend's figures of a line, from the intervals that touch [from, to). The running interval is
 * incomplete: it counts toward the sum, but is not a minimum, and is shown separately. */
export function figuresOf(line: Line, from: number, to: number): Figures {
  const figures: Figures = { last: null, running: null, low: null, high: null, sum: null };
  line.values.forEach((value, i) => {
    const start = line.start + i * line.precision;
    if (value === null || !touches(start, line.precision, from, to)) return;
    if (line.sums) figures.sum = (figures.sum ?? 0) + value;
    if (line.partial && i === line.values.length - 1) {
      figures.running = value;
      return;
    }
    figures.last = value;
    figures.low = figures.low === null || value < figures.low ? value : figures.low;
    figures.high = figures.high === null || value > figures.high ? value : figures.high;
  });
  return figures;
}

/** The value of a line in the interval that contains a moment. */
export function valueAt(line: Line, moment: number): number | null {
  const index = Math.floor((moment - line.start) / line.precision);
  return line.values[index] ?? null;
}

/** The index of the interval that contains a moment: the last one that begins no later; -1 before all. */
export function indexAt(starts: ArrayLike<number>, moment: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= moment) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export interface Group {
  unit: Unit;
  kind: Series["kind"];
  precision: number;
  lines: Line[];
}

/** The highest value of a line, 0 if it has none. */
const highest = (line: Line) => Math.max(0, ...line.values.map((value) => Math.abs(value ?? 0)));

/** Whether one line would be flat on the axis of the other. */
function apart(group: Group, line: Line): boolean {
  // Percentiles have a logarithmic axis where they differ: see spansDecade().
  if (line.unit === "ratio" || (line.kind === "histogram" && group.kind === "histogram")) return false;
  const size = highest(line);
  return group.lines.some((each) => {
    const other = highest(each);
    return size > 0 && other > 0 && Math.max(size, other) > APART * Math.min(size, other);
  });
}

/** Whether percentiles differ so much that a linear axis would show only the highest. */
export function spansDecade({ kind, lines }: Group): boolean {
  const values = lines.flatMap((line) => line.values.filter((value) => value !== null && value > 0));
  return kind === "histogram" && Math.max(...values.map(Number)) > 10 * Math.min(...values.map(Number));
}

/** Group lines of the same unit, interval width and order of magnitude, in the order of the lines. */
export function together(lines: readonly Line[]): Group[] {
  const groups: Group[] = [];
  for (const line of lines) {
    const { unit, kind, precision } = line;
    const group = groups.find(
      (each) => each.unit === unit && each.precision === precision && !apart(each, line),
    );
    if (group) group.lines.push(line);
    else groups.push({ unit, kind, precision, lines: [line] });
  }
  return groups;
}
