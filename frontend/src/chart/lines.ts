// Series become columns for the chart. An interval without a value is a gap; an interval that another series
// does not have, since its intervals are wider, is none. The newest interval of a series is still running,
// so what leads to it is a column of its own, which is drawn dashed.
import type { Series } from "../api/types";
import { unitOf, type Unit } from "../lib/units";

export interface Line {
  /** Names it in the address and in the legend. */
  key: string;
  label: string;
  unit: Unit;
  /** Of what it was made; histograms are kept for a time of their own. */
  kind: Series["kind"];
  /** Whether its values add up. */
  sums: boolean;
  precision: number;
  start: number;
  values: readonly (number | null)[];
  partial: boolean;
}

/** How many times as high as another a line may be to share its axis. */
const APART = 30;

/** null: a gap. undefined: nothing is expected here. */
export type Cell = number | null | undefined;

export interface Columns {
  x: number[];
  /** Two for each line: what has ended, and what leads to the running interval. */
  y: Cell[][];
}

/** A line of a series, as the API answers it. Of a histogram there are percentiles. */
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
  /** Of the newest interval that has ended. */
  last: number | null;
  /** Of the interval that still runs; null where there is none. */
  running: number | null;
  low: number | null;
  high: number | null;
  /** null where values do not add up. */
  sum: number | null;
}

/** What the legend shows of a line, of the intervals that begin within [from, to). An interval that still runs
 * is a part: it is shown next to the others, and is no minimum. It counts for the sum. */
export function figuresOf(line: Line, from: number, to: number): Figures {
  const found: Figures = { last: null, running: null, low: null, high: null, sum: null };
  line.values.forEach((value, i) => {
    const start = line.start + i * line.precision;
    if (value === null || start < from || start >= to) return;
    if (line.sums) found.sum = (found.sum ?? 0) + value;
    if (line.partial && i === line.values.length - 1) {
      found.running = value;
      return;
    }
    found.last = value;
    found.low = found.low === null || value < found.low ? value : found.low;
    found.high = found.high === null || value > found.high ? value : found.high;
  });
  return found;
}

/** The value of a line in the interval that contains a moment. */
export function valueAt(line: Line, moment: number): number | null {
  const index = Math.floor((moment - line.start) / line.precision);
  return line.values[index] ?? null;
}

/** The index of the interval that contains a moment: of the last that begins no later; -1 before all. */
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

/** Whether lines are so different in size that one would be flat below the other. */
function apart(group: Group, line: Line): boolean {
  // Percentiles have a logarithmic axis where they differ: see spansDecade().
  if (line.unit === "ratio" || (line.kind === "histogram" && group.kind === "histogram")) return false;
  const size = highest(line);
  return group.lines.some((each) => {
    const other = highest(each);
    return size > 0 && other > 0 && Math.max(size, other) > APART * Math.min(size, other);
  });
}

/** Whether percentiles are so different that a linear axis would show the highest only. */
export function spansDecade({ kind, lines }: Group): boolean {
  const values = lines.flatMap((line) => line.values.filter((value) => value !== null && value > 0));
  return kind === "histogram" && Math.max(...values.map(Number)) > 10 * Math.min(...values.map(Number));
}

/** Lines of one unit, of intervals of one width and of like size are drawn together, in the order of the
 * lines. */
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
