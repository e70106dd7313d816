// The overview's three lines: always there, in their colours.
import { expect, test } from "vitest";
import type { Curve } from "../api/types";
import { failing, trafficLines } from "./trafficlines";

const curve = (name: string, values: (number | null)[], more = {}): Curve =>
  ({
    name,
    kind: "counter",
    precision: 60,
    start: 600,
    values,
    partial: true,
    looked_at: 1,
    of: 1,
    ...more,
  }) as Curve;

test("the share of what failed, slice by slice", () => {
  const line = failing(curve("hits", [10, 0, null, 20]), curve("http_requests 5xx", [5, 4], { start: 720 }));
  expect(line.values).toEqual([0, null, null, 0.2]);
  expect(line.unit).toBe("ratio");
});

test("nothing failed is a line at zero, not none", () => {
  const { lines, places } = trafficLines([curve("hits", [10, 10])], false);
  expect(lines.map((line) => [line.label, line.values])).toEqual([
    ["hits", [10, 10]],
    ["failing requests", [0, 0]],
  ]);
  expect(places).toEqual([0, 1]);
});

test("durations keep their colour, whatever is beside them", () => {
  const took = curve("http_request_seconds", [0.1], { kind: "histogram" });
  expect(trafficLines([curve("hits", [1]), took], false).places).toEqual([0, 1, 2]);
  const failed = curve("http_requests 5xx", [1]);
  expect(trafficLines([curve("hits", [1]), failed, took], false).places).toEqual([0, 1, 2]);
});

test("what somebody chose is shown as it is", () => {
  const { lines, places, series } = trafficLines([curve("hits", [1]), curve("misses", [2])], true);
  expect(lines.map((line) => line.key)).toEqual(["hits", "misses"]);
  expect(places).toEqual([0, 1]);
  expect(series.get("misses")).toBe("misses");
});

test("failures lead to the requests that they are of", () => {
  expect(trafficLines([curve("hits", [1])], false).series.get("failing requests")).toBe("http_requests");
});
