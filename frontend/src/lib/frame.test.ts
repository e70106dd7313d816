// Moving windows, those that are offered, and their compared periods.
import { expect, test } from "vitest";
import { comparedText, lacking, presets, referenceOf, SHIFTS, stepped, widened } from "./frame";
import { ranges } from "./ranges";

test("a step is half a window, and twice out is twice as wide", () => {
  expect(stepped({ from: 1000, to: 1600 }, -1)).toEqual({ from: 700, to: 1300 });
  expect(stepped({ from: 1000, to: 1600 }, 1)).toEqual({ from: 1300, to: 1900 });
  expect(widened({ from: 1000, to: 1600 })).toEqual({ from: 700, to: 1900 });
});

test("windows of an hour, a day and a week are offered where a precision keeps them", () => {
  const all = presets(ranges({ "1": 120, "60": 120, "3600": 240, "86400": 120 }));
  expect(all.map(({ label, last, precision }) => [label, last, precision])).toEqual([
    ["2 min", null, 1],
    ["1 h", 3600, 60],
    ["2 h", null, 60],
    ["24 h", 86_400, 3600],
    ["7 d", 604_800, 3600],
    ["10 d", null, 3600],
    ["120 d", null, 86_400],
  ]);
  expect(presets([])).toEqual([]);
});

test("another day is compared at the same edges, or the samples that are missing are named", () => {
  const all = ranges({ "60": 120, "3600": 240 });
  const now = 1_000_000 * 3600 + 600;
  const end = 1_000_000 * 3600;
  const week = SHIFTS["last-week"];
  // A day up to now, by the hour; two hours up to now by the minute; two whole hours of today.
  expect(lacking(all, { from: end - 82_800, to: end + 3600 }, 3600, now, week)).toBeNull();
  expect(lacking(all, { from: now - 7200, to: now + 60 }, 60, now, week)).toEqual({
    precision: 60,
    samples: 10_202,
  });
  expect(lacking(all, { from: end - 7200, to: end }, 60, now, week)).toBeNull();
  expect(lacking(all, { from: end - 7260, to: end - 60 }, 60, now, week)?.precision).toBe(60);
});

test("a compared period that is not exactly the one before is shown with its times", () => {
  const span = {
    precision: 60,
    start: 7260,
    end: 14_460,
    histograms: 60,
    histograms_start: 7260,
    histograms_end: 14_460,
    before: true,
    before_precision: 60,
    before_start: 60,
    before_end: 7260,
    histograms_before_start: null,
    histograms_before_end: null,
    shift: null,
  };
  expect(comparedText(span, "", "utc")).toBe("the 2 h before");
  expect(comparedText({ ...span, before_start: 0, before_end: 7200 }, "", "utc")).toBe("00:00 to 02:00");
});

test("the compared period is named", () => {
  expect(referenceOf("", 7200)).toBe("the 2 h before");
  expect(referenceOf("last-week", 7200)).toBe("last week");
});
