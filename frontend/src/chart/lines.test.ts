// Gaps, running intervals and different precisions in columns.
import { expect, test } from "vitest";
import { columns, figuresOf, indexAt, lineOf, spansDecade, together, united, valueAt } from "./lines";

const series = (name: string, values: (number | null)[], more = {}) =>
  lineOf({ name, kind: "counter", precision: 10, start: 100, values, partial: false, ...more });

test("a gap is null, not zero", () => {
  expect(columns([series("a", [1, null, 0])])).toEqual({
    x: [100, 110, 120],
    y: [
      [1, null, 0],
      [undefined, undefined, undefined],
    ],
  });
});

test("the running interval is in the second column, together with the one before it", () => {
  const { y } = columns([series("a", [1, 2, 3], { partial: true })]);
  expect(y).toEqual([
    [1, 2, undefined],
    [undefined, 2, 3],
  ]);
});

test("wider intervals leave holes that are not gaps", () => {
  const { x, y } = columns([series("a", [1, 2, 3]), series("b", [7, 8], { precision: 20 })]);
  expect(x).toEqual([100, 110, 120]);
  expect(y[2]).toEqual([7, undefined, 8]);
});

test("an empty line has columns, too", () => {
  expect(columns([series("a", [])])).toEqual({ x: [], y: [[], []] });
  expect(columns([series("a", [])], [100, 110]).y[0]).toEqual([undefined, undefined]);
});

test("figures cover the visible window only", () => {
  const line = series("a", [9, 1, null, 4, 7]);
  expect(figuresOf(line, 110, 140)).toEqual({ last: 4, running: null, low: 1, high: 4, sum: 5 });
  expect(figuresOf(line, 0, 50)).toEqual({ last: null, running: null, low: null, high: null, sum: null });
});

test("the running interval is separate, not a drop, and counts toward the sum only", () => {
  const line = series("a", [9, 8, 1], { partial: true });
  expect(figuresOf(line, 100, 130)).toEqual({ last: 8, running: 1, low: 8, high: 9, sum: 18 });
  expect(figuresOf(line, 120, 130)).toEqual({ last: null, running: 1, low: null, high: null, sum: 1 });
});

test("gauges have no sum", () => {
  expect(figuresOf(series("g", [1, 2], { kind: "gauge" }), 0, 1000).sum).toBeNull();
});

test("the value at a moment is that of its interval", () => {
  const line = series("a", [1, 2]);
  expect([99, 100, 109.9, 119, 120].map((at) => valueAt(line, at))).toEqual([null, 1, 1, 2, null]);
});

test("a moment is in the last interval that began before it", () => {
  expect([99, 100, 105, 110, 500].map((at) => indexAt([100, 110, 120], at))).toEqual([-1, 0, 0, 1, 2]);
  expect(indexAt([], 5)).toBe(-1);
});

test("lines are grouped by unit in the order of the lines, and a histogram is called by its percentile", () => {
  const p95 = series("http_request_seconds", [0.1], { kind: "histogram" });
  const groups = together([series("hits", [1]), p95, series("misses", [1])]);
  expect(groups.map((group) => [group.unit, group.kind, group.lines[0]?.label])).toEqual([
    ["", "counter", "hits"],
    ["seconds", "histogram", "http_request_seconds p95"],
  ]);
});

test("intervals of different widths are not drawn together", () => {
  const groups = together([series("a", [1]), series("b", [1], { precision: 20 }), series("c", [1])]);
  expect(groups.map((group) => [group.precision, group.lines.length])).toEqual([
    [10, 2],
    [20, 1],
  ]);
});

test("lines that are compared share an axis, whatever their magnitude", () => {
  const lines = [series("rate", [1]), series("limit", [1000])];
  expect(together(lines)).toHaveLength(2);
  expect(together(lines, true)).toHaveLength(1);
});

test("percentiles that span a decade start with a logarithmic axis", () => {
  const group = (kind: "histogram" | "counter", values: (number | null)[]) =>
    ({ kind, lines: [{ values }] }) as never;
  expect(spansDecade(group("histogram", [0.004, null, 0, 0.08]))).toBe(true);
  expect(spansDecade(group("histogram", [0.04, 0.08]))).toBe(false);
  expect(spansDecade(group("histogram", [null]))).toBe(false);
  expect(spansDecade(group("counter", [1, 80]))).toBe(false);
});

test("periods that overlap are one", () => {
  expect(
    united([
      [5, 9],
      [1, 3],
      [2, 4],
      [4, 5],
      [12, 13],
    ]),
  ).toEqual([
    [1, 9],
    [12, 13],
  ]);
});
