// The lines about the tests of a verdict.
import { expect, test } from "vitest";
import type { VerdictRow } from "../api/types";
import { probability, testLines, trafficChange } from "./verdicttests";

const metric = (verdict: string, test: string, p_adjusted: number | null, reason: string) =>
  ({ verdict, test, p_adjusted, reason }) as VerdictRow["p95"];

test("each metric has a line with its test, or the reason why there is none", () => {
  const row = {
    route: "/cart",
    error_rate: metric("worse", "conditional binomial", 1e-9, ""),
    p95: metric("too little data", "", null, "12 requests"),
  } as VerdictRow;
  expect(testLines([row])).toEqual([
    {
      route: "/cart",
      measure: "error rate",
      verdict: "worse",
      how: "conditional binomial; p < 0.001 after Holm",
    },
    { route: "/cart", measure: "p95", verdict: "too little data", how: "not tested; 12 requests" },
  ]);
});

test("probabilities have two digits", () => {
  expect([0.04321, 1, 0.00099].map(probability)).toEqual(["= 0.043", "= 1", "< 0.001"]);
});

test("traffic changes by whole percents", () => {
  expect([1.124, 0.97, 1, null, 20].map(trafficChange)).toEqual(["+12 %", "−3 %", "+0 %", "", "+1,900 %"]);
});
