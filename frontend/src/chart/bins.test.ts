// Bars of buckets: no value gets lost.
import { expect, test } from "vitest";
import { bins, logarithmic } from "./bins";

const sum = (of: { count: number }[]) => of.reduce((all, each) => all + each.count, 0);

test("every value is in a bar", () => {
  const buckets = Array.from({ length: 300 }, (_, i) => [2 ** (i / 16), 2 ** ((i + 1) / 16), i] as const);
  const bars = bins(buckets);
  expect(bars).toHaveLength(48);
  expect(sum(bars)).toBe((299 * 300) / 2);
});

test("few buckets keep their own bars", () => {
  expect(
    bins([
      [1, 2, 5],
      [2, 4, 7],
    ]).map((bin) => bin.count),
  ).toEqual([5, 7]);
});

test("zero and negative values have a linear axis", () => {
  const bars = bins([
    [-2, -1, 1],
    [0, 0, 2],
    [1, 2, 3],
  ]);
  expect(sum(bars)).toBe(6);
  expect(bars.every((bin) => Number.isFinite(bin.low) && Number.isFinite(bin.high))).toBe(true);
});

test("one value alone, and none", () => {
  expect(bins([[0, 0, 4]])).toEqual([{ low: 0, high: 0, count: 4 }]);
  expect(bins([])).toEqual([]);
});

test("the axis is logarithmic where all values are positive", () => {
  expect([logarithmic([[1, 2, 5]]), logarithmic([[0, 0, 1]]), logarithmic([])]).toEqual([true, false, false]);
});
