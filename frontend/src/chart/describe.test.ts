// The text of an interval for screen readers.
import { expect, test } from "vitest";
import { lineOf } from "./lines";
import { describe } from "./describe";

const line = lineOf({
  name: "hits",
  kind: "counter",
  precision: 60,
  start: 0,
  values: [5, null, 7],
  partial: true,
});

test("the interval, its values and its marks", () => {
  expect(describe(0, [line], 60, "utc", [{ time: 30, label: "v2" }], [])).toBe("00:00: hits 5, mark v2");
});

test("a gap reads as nothing measured, a running interval as so far", () => {
  expect(describe(60, [line], 60, "utc", [], [])).toBe("00:01: hits nothing measured");
  expect(describe(120, [line], 60, "utc", [], [])).toBe("00:02: hits 7 so far");
});

test("the expected range", () => {
  const expectedRange = [{ start: 0, low: 2, mid: 3, high: 9 }];
  expect(describe(0, [line], 60, "utc", [], expectedRange)).toBe("00:00: hits 5, expected 2 to 9");
});

test("untrusted names are plain text", () => {
  const odd = { ...line, label: "a\u202eb" };
  expect(describe(0, [odd], 60, "utc", [], [])).toContain("a⟨U+202E⟩b");
});
