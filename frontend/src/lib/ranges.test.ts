// Ranges are made from the retention.
import { expect, test } from "vitest";
import { coverage, durationLabel, finest, nearest, pollEvery, ranges } from "./ranges";

const KEPT = { "86400": 120, "1": 120, "5": 120, "60": 120, "300": 120, "3600": 120, "18000": 120 };

test("labels are computed, the finest first", () => {
  expect(ranges(KEPT).map((range) => `${range.label} by ${range.step}`)).toEqual([
    "2 min by 1 s",
    "10 min by 5 s",
    "2 h by 1 min",
    "10 h by 5 min",
    "5 d by 1 h",
    "25 d by 5 h",
    "120 d by 1 d",
  ]);
});

test("odd durations are rounded to one decimal", () => {
  expect([90, 5400, 7, 129_600].map(durationLabel)).toEqual(["90 s", "90 min", "7 s", "36 h"]);
});

test("intervals cover whole intervals, the running one among them", () => {
  expect(coverage(0, 3600, 119 * 3600 + 5)).toBe("5 d");
  expect(coverage(100, 5, 90)).toBe("5 s");
});

test("invalid retentions are left out", () => {
  expect(ranges({ "0": 5, x: 3, "60": 0 })).toEqual([]);
});

test("requests are at most a second apart at the finest precision, and never more than ten", () => {
  expect([1, 5, 30, 60, 86_400].map(pollEvery)).toEqual([750, 1000, 5000, 10_000, 10_000]);
});

test("the finest range that holds a moment", () => {
  expect(finest(ranges(KEPT), 1000, 1100)?.precision).toBe(1);
  expect(finest(ranges(KEPT), 0, 3600)?.precision).toBe(60);
  expect(finest(ranges(KEPT), 0, 1e9)).toBeUndefined();
});

test("an unknown precision falls to the nearest", () => {
  expect(nearest(ranges(KEPT), 50)?.precision).toBe(60);
  expect(nearest(ranges(KEPT), 1e308)?.precision).toBe(86_400);
  expect(nearest([], 60)).toBeUndefined();
});
