// The overview's three lines: always there, in the same colors.
import { expect, test } from "vitest";
import type { Curve, Numbers } from "../api/types";
import { failing, knownSince, trafficLines } from "./trafficlines";

const curve = (name: string, values: (number | null)[], more = {}): Curve =>
  ({
    name,
    kind: "counter",
    precision: 60,
    start: 600,
    values,
    partial: true,
    examined: 1,
    of: 1,
    ...more,
  }) as Curve;

test("the share of what failed, interval by interval, from the first whose failures are known", () => {
  const hits = curve("hits", [10, 0, null, 20, 30]);
  const line = failing(hits, curve("hits_failed", [5, 4, 0], { start: 720 }));
  expect(line.values).toEqual([null, null, null, 0.2, 0]);
  expect(line.unit).toBe("ratio");
});

test("no failures are a line at zero, not no line", () => {
  const { lines, places } = trafficLines([curve("hits", [10, 10]), curve("hits_failed", [0, 0])], false);
  expect(lines.map((line) => [line.label, line.values])).toEqual([
    ["hits", [10, 10]],
    ["error rate", [0, 0]],
  ]);
  expect(places).toEqual([0, 1]);
});

test("unknown failures have no line", () => {
  expect(trafficLines([curve("hits", [10, 10])], false).lines.map((line) => line.label)).toEqual(["hits"]);
});

test("durations keep their color, next to any other lines", () => {
  const took = curve("hits_seconds", [0.1], { kind: "histogram" });
  expect(trafficLines([curve("hits", [1]), took], false).places).toEqual([0, 2]);
  const failed = curve("hits_failed", [1]);
  const { lines, places } = trafficLines([curve("hits", [1]), failed, took], false);
  expect(places).toEqual([0, 1, 2]);
  expect(lines.map((line) => [line.label, line.unit])).toEqual([
    ["hits", ""],
    ["error rate", "ratio"],
    ["p95 response time", "seconds"],
  ]);
});

test("figures that cover only part of the window state its start", () => {
  const numbers = (errors: object, p95: object) =>
    ({ hits: { name: "hits", count: 9 }, errors, p95 }) as unknown as Numbers;
  const all = { value: 0.1, since: null };
  const part = { value: 0.1, since: 1_700_000_040 };
  expect(knownSince(numbers(all, all), "utc")).toBe("");
  expect(knownSince(numbers(part, all), "utc")).toMatch(/^Error rate: known since .*22:14.*\.$/);
  expect(knownSince(numbers(all, part), "utc")).toMatch(/^Response times: known since .*22:14.*\.$/);
  expect(knownSince(numbers({ value: null, since: null }, all), "utc")).toBe(
    "Error rate: not recorded in this window.",
  );
});

test("chosen series are shown unchanged", () => {
  const { lines, places, series } = trafficLines([curve("hits", [1]), curve("misses", [2])], true);
  expect(lines.map((line) => line.key)).toEqual(["hits", "misses"]);
  expect(places).toEqual([0, 1]);
  expect(series.get("misses")).toBe("misses");
});

test("each line leads to its series", () => {
  const chart = [curve("hits", [1]), curve("hits_failed", [1]), curve("hits_seconds", [1])];
  const { series } = trafficLines(chart, false);
  expect(series.get("error rate")).toBe("hits_failed");
  expect(series.get("p95 response time")).toBe("hits_seconds");
});
