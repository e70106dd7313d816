// The lines of the overview's chart. Those of a web application are always the same three, in the same
// colors: requests, the share of them that failed, and their p95 response time.
import type { Curve, Numbers } from "../api/types";
import { lineOf, type Line } from "../chart/lines";
import { momentOf, type Clock } from "../lib/time";

const HITS = "hits";
const FAILED = "hits_failed";
const TOOK = "hits_seconds";

export interface Traffic {
  lines: Line[];
  /** Of the lines in the palette. */
  places: number[];
  /** Which series each line leads to, by its key. */
  series: Map<string, string>;
}

/** The share of failed requests in each interval, from the first one whose failures are known. An interval
 * without a request has no share. */
export function failing(hits: Curve, failed: Curve): Line {
  const values = hits.values.map((all, i) => {
    if (all === null || all <= 0) return null;
    const start = hits.start + i * hits.precision;
    if (start < failed.start) return null;
    return Math.min(1, Math.max(0, failed.values[(start - failed.start) / failed.precision] ?? 0) / all);
  });
  const label = "error rate";
  return { ...lineOf({ ...hits, values }, label), key: label, unit: "ratio", sums: false };
}

/** `chosen`: whether the user chose the series; these are shown unchanged. */
export function trafficLines(chart: readonly Curve[], chosen: boolean): Traffic {
  const hits = chart.find((each) => each.name === HITS && each.values.length > 0);
  const rows = chart.map((curve, place) => ({ line: lineOf(curve), place, name: curve.name }));
  if (!chosen) {
    const roles = [HITS, FAILED, TOOK];
    chart.forEach((curve, i) => {
      const row = rows[i];
      if (!row || !roles.includes(curve.name)) return;
      row.place = roles.indexOf(curve.name);
      if (curve.name === FAILED && hits) row.line = failing(hits, curve);
      if (curve.name === TOOK) row.line = lineOf(curve, "p95 response time");
    });
  }
  return {
    lines: rows.map((row) => row.line),
    places: rows.map((row) => row.place),
    series: new Map(rows.map((row) => [row.line.key, row.name])),
  };
}

/** The start of known failures and durations, if they do not cover the whole window. */
export function knownSince({ hits, errors, p95 }: Numbers, clock: Clock): string {
  if (hits.name !== HITS || hits.count === 0) return "";
  const parts = [];
  if (errors.value === null) parts.push("Error rate: not recorded in this window.");
  else if (errors.since !== null) parts.push(`Error rate: known since ${momentOf(errors.since, clock)}.`);
  if (p95.since !== null) parts.push(`Response times: known since ${momentOf(p95.since, clock)}.`);
  return parts.join(" ");
}
