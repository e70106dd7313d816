// Series become columns for the chart. A slice without a value is a gap; a slice that another series
// does not have, since its slices are wider, is none. The newest slice of a series is still running,
// so what leads to it is a column of its own, which is drawn dashed.
import type { Series } from "../api/types";
import { unitOf, type Unit } from "../lib/units";

export interface Line {
  /** Names it in the address and in the legend. */
  key: string;
  label: string;
  unit: Unit;
  /** Whether its values add up. */
  sums: boolean;
  precision: number;
  start: number;
  values: readonly (number | null)[];
  partial: boolean;
}

/** null: a gap. undefined: nothing is expected here. */
export type Cell = number | null | undefined;

export interface Columns {
  x: number[];
  /** Two for each line: what has ended, and what leads to the running slice. */
  y: Cell[][];
}

/** A line of a series, as the API answers it. Of a histogram there are percentiles. */
export function lineOf(series: Series, label = series.name): Line {
  const shown = series.kind === "histogram" && label === series.name ? `${label} p95` : label;
  return {
    key: shown,
    label: shown,
    unit: unitOf(series.name),
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
  last: number | null;
  low: number | null;
  high: number | null;
  /** null where values do not add up. */
  sum: number | null;
}

/** What the legend says of a line, of the slices that begin within [from, to]. */
export function figuresOf(line: Line, from: number, to: number): Figures {
  let last: number | null = null;
  let low: number | null = null;
  let high: number | null = null;
  let sum = 0;
  line.values.forEach((value, i) => {
    const start = line.start + i * line.precision;
    if (value === null || start < from || start > to) return;
    last = value;
    low = low === null || value < low ? value : low;
    high = high === null || value > high ? value : high;
    sum += value;
  });
  return { last, low, high, sum: line.sums && last !== null ? sum : null };
}

/** The value of a line in the slice that a moment lies in. */
export function valueAt(line: Line, moment: number): number | null {
  const index = Math.floor((moment - line.start) / line.precision);
  return line.values[index] ?? null;
}

/** Lines of a unit are drawn together; the unit of the first line first. */
export function byUnit(lines: readonly Line[]): { unit: Unit; lines: Line[] }[] {
  const units = [...new Set(lines.map((line) => line.unit))];
  return units.map((unit) => ({ unit, lines: lines.filter((line) => line.unit === unit) }));
}
