// The tests behind a verdict as lines of text: each measure, its result and its test.
import type { VerdictRow } from "../api/types";

export interface TestLine {
  route: string | null;
  measure: "error rate" | "p95";
  verdict: string;
  /** The test in words, the adjusted p-value, and the reason why there is no result. */
  how: string;
}

export function testLines(rows: readonly VerdictRow[]): TestLine[] {
  return rows.flatMap(({ route, error_rate, p95 }) =>
    [["error rate", error_rate] as const, ["p95", p95] as const].map(([measure, metric]) => ({
      route,
      measure,
      verdict: metric.verdict,
      how: [
        metric.test || "not tested",
        metric.p_adjusted === null ? "" : `p ${probability(metric.p_adjusted)} after Holm`,
        metric.reason,
      ]
        .filter(Boolean)
        .join("; "),
    })),
  );
}

/** "0.04", "< 0.001". */
export function probability(p: number): string {
  return p < 0.001 ? "< 0.001" : `= ${Number(p.toPrecision(2))}`;
}

/** The change of a rate of requests: "+12 %", "−3 %"; "" if it is unknown. */
export function trafficChange(ratio: number | null): string {
  if (ratio === null) return "";
  const rounded = Math.round((ratio - 1) * 100);
  return `${rounded < 0 ? "−" : "+"}${Math.abs(rounded).toLocaleString("en")} %`;
}
