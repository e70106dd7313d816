// The lines of the overview's chart. Those of a web application are always the same three, in the same
// colours: how often it was asked, which share of it failed, and how long nearly all of it took at most.
import type { Curve } from "../api/types";
import { lineOf, type Line } from "../chart/lines";

const HITS = "hits";
const FAILED = "http_requests 5xx";
const TOOK = "http_request_seconds";

export interface Traffic {
  lines: Line[];
  /** Of the lines in the palette. */
  places: number[];
  /** Which series each line leads to, by its key. */
  series: Map<string, string>;
}

/** The share of failed requests in each slice; none failed where nothing is told of failures. A slice
 * without a request has no share. */
export function failing(hits: Curve, failed: Curve | undefined): Line {
  const values = hits.values.map((all, i) => {
    if (all === null || all <= 0) return null;
    const start = hits.start + i * hits.precision;
    const index = failed ? (start - failed.start) / failed.precision : -1;
    return Math.min(1, Math.max(0, failed?.values[index] ?? 0) / all);
  });
  const label = "failing requests";
  return { ...lineOf({ ...hits, values }, label), key: label, unit: "ratio", sums: false };
}

/** `chosen`: somebody chose the series; they are shown as they are. */
export function trafficLines(chart: readonly Curve[], chosen: boolean): Traffic {
  const hits = chart.find((each) => each.name === HITS && each.values.length > 0);
  const rows = chart.map((curve, place) => ({ line: lineOf(curve), place, name: curve.name }));
  if (hits && !chosen) {
    const failed = chart.find((each) => each.name === FAILED);
    const roles = [HITS, FAILED, TOOK];
    for (const row of rows) row.place = Math.max(0, roles.indexOf(row.name));
    const others = rows.filter((row) => row.name !== FAILED && row.name !== HITS);
    const first = rows.filter((row) => row.name === HITS);
    rows.splice(0, rows.length, ...first, { line: failing(hits, failed), place: 1, name: FAILED }, ...others);
  }
  return {
    lines: rows.map((row) => row.line),
    places: rows.map((row) => row.place),
    // What was added up under a name of its own leads to what it is of.
    series: new Map(rows.map((row) => [row.line.key, row.name.replace(/ 5xx$/, "")])),
  };
}
