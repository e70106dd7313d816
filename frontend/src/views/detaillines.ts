// The lines on the page of a series: its values, or the percentiles of a histogram over time.
import type { DetailAnswer, Forecast, Series } from "../api/types";
import { lineOf, type Line } from "../chart/lines";
import { unitOf } from "../lib/units";

/** "0.95" -> "p95". */
export function percentile(key: string): string {
  return `p${Number((Number(key) * 100).toFixed(3))}`;
}

export function detailLines(answer: DetailAnswer): Line[] {
  const { summary, kind, name, window } = answer;
  const chosen = answer.precisions.find((each) => each.precision === window.precision);
  if (kind !== "histogram") return chosen ? [lineOf(chosen, chosen.name)] : [];
  const over = summary?.over_time;
  if (!over) return [];
  const precision = window.histograms;
  const { start, partial } = over;
  const common = { unit: unitOf(name), kind, sums: false, precision, start, partial };
  const keys = Object.keys(over.quantiles).sort((a, b) => Number(a) - Number(b));
  return [
    ...keys.map((key) => ({
      ...common,
      key: percentile(key),
      label: percentile(key),
      values: over.quantiles[key] ?? [],
    })),
    { ...common, key: "mean", label: "mean", values: over.mean },
    { ...common, unit: "" as const, sums: true, key: "count", label: "count", values: over.count },
  ];
}

/** The expected range and the anomalies for a chart of `precision`, up to `until`; empty if there is no
 * forecast. */
export function expectedRangeOf(forecast: Forecast | null, precision: number, until = Infinity) {
  if (forecast === null || forecast.precision !== precision) return {};
  const expectedRange = [...forecast.past, ...forecast.ahead].filter((each) => each.start < until);
  const outside = forecast.past
    .filter((each) => each.outside)
    .map((each) => [each.start, each.value] as [number, number]);
  return expectedRange.length > 0 ? { expectedRange, outside } : {};
}

/** The line of a small chart of one precision. */
export const smallLine = (series: Series): Line => lineOf(series, "values");
