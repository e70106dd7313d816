// The lines of a route: requests by status class, and percentiles over time.
import type { GroupedSeries, GroupedSummary } from "../api/types";
import { lineOf, type Line } from "../chart/lines";

/** The class of a status: "2xx". */
export function classOf(status: string | null | undefined): string {
  return /^[1-5]/.test(status ?? "") ? `${(status ?? "").charAt(0)}xx` : "other";
}

/** One line per status class, successes first. */
export function statusLines(series: readonly GroupedSeries[]): Line[] {
  const classes = new Map<string, Line>();
  for (const each of series) {
    if (each.values.length === 0) continue;
    const name = classOf(each.labels["status"]);
    const line: Line = { ...lineOf(each, name), key: name, label: name, unit: "" };
    const known = classes.get(name);
    classes.set(name, known ? added(known, line) : line);
  }
  return [...classes.values()].sort((a, b) => a.key.localeCompare(b.key));
}

/** One line per outcome of a task's runs, successes first. */
export function outcomeLines(series: readonly GroupedSeries[]): Line[] {
  return series
    .filter((each) => each.values.length > 0)
    .map((each) => {
      const name = each.labels["state"] ?? "other";
      return { ...lineOf(each, name), key: name, label: name, unit: "" as const };
    })
    .sort((a, b) => Number(b.key === "success") - Number(a.key === "success") || a.key.localeCompare(b.key));
}

function added(one: Line, other: Line): Line {
  const start = Math.min(one.start, other.start);
  const end = Math.max(
    one.start + one.values.length * one.precision,
    other.start + other.values.length * other.precision,
  );
  const at = (line: Line, time: number) => line.values[(time - line.start) / line.precision] ?? 0;
  const values = Array.from({ length: Math.round((end - start) / one.precision) }, (_, i) => {
    const time = start + i * one.precision;
    return at(one, time) + at(other, time);
  });
  return { ...one, start, values, partial: one.partial || other.partial };
}

/** The percentiles of a route over time. */
export function latencyLines(summary: GroupedSummary | null, precision: number): Line[] {
  const over = summary?.over_time;
  if (!summary || !over) return [];
  return Object.keys(over.quantiles)
    .sort((a, b) => Number(a) - Number(b))
    .map((key) => {
      const name = `p${Number((Number(key) * 100).toFixed(3))}`;
      return {
        key: name,
        label: name,
        unit: "seconds" as const,
        kind: "histogram" as const,
        sums: false,
        precision,
        start: over.start,
        values: over.quantiles[key] ?? [],
        partial: over.partial,
      };
    });
}

/** The parts of the mean response time; empty if only the total is known. */
export function shares(total: number | null, database: number | null) {
  if (total === null || database === null || total <= 0) return [];
  const inside = Math.min(database, total);
  return [
    { name: "Database", mean: inside, share: inside / total },
    { name: "Everything else", mean: total - inside, share: (total - inside) / total },
  ];
}
