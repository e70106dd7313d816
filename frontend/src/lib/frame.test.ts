// Moving windows, and the precision that shows one.
import { expect, test } from "vitest";
import { reaching, referenceOf, stepped, widened } from "./frame";
import { ranges } from "./ranges";

const ALL = ranges({ "1": 120, "60": 120, "3600": 120 });

test("a step is half a window, and twice out is twice as wide", () => {
  expect(stepped({ from: 1000, to: 1600 }, -1)).toEqual({ from: 700, to: 1300 });
  expect(stepped({ from: 1000, to: 1600 }, 1)).toEqual({ from: 1300, to: 1900 });
  expect(widened({ from: 1000, to: 1600 })).toEqual({ from: 700, to: 1900 });
});

test("a window has the chosen precision, or the next one with sufficient retention", () => {
  const now = 1_000_000;
  expect(reaching(ALL, 60, now - 600, now)?.precision).toBe(60);
  expect(reaching(ALL, 60, now - 86_400, now)?.precision).toBe(3600);
  expect(reaching(ALL, 1, now - 3000, now)?.precision).toBe(60);
  expect(reaching(ALL, 60, 0, now)?.precision).toBe(3600);
});

test("the compared period is named", () => {
  expect(referenceOf("", 7200)).toBe("the 2 h before");
  expect(referenceOf("last-week", 7200)).toBe("last week");
});
