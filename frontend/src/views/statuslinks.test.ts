// The explanations that the status sentence leads to.
import { expect, test } from "vitest";
import type { StatusAnswer } from "../api/types";
import { explanationOf } from "./statuslinks";

const check = (name: string, failing: string[], began: number | null) =>
  ({ name, began, explain: { name: "http_requests", failing } }) as StatusAnswer["checks"][number];
const status = {
  since: 6000,
  until: 6300,
  checks: [check("hits", [], null), check("hits_failed", ["status=5xx"], 5100)],
} as StatusAnswer;

test("a usual metric is explained within the five minutes of the status", () => {
  expect(explanationOf(status, "hits")).toEqual({ since: 6000, until: 6300, explain: "hits" });
});

test("an unusual metric is explained since its change began, by its own measure", () => {
  expect(explanationOf(status, "hits_failed")).toEqual({ since: 5100, until: 6300, explain: "error rate" });
});

test("a metric without a check is not explained", () => {
  expect(explanationOf(status, "other")).toBeNull();
});
