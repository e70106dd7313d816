// The end of the axis of shares: room above the values, and distinct ticks.
import { expect, test } from "vitest";
import { topOfShares } from "./axis";

test("a rise from 0.02 % to 0.13 % takes most of the height", () => {
  const top = topOfShares(0.0013);
  expect(0.0013 / top).toBeGreaterThan(0.7);
  expect(0.0002 / top).toBeLessThan(0.2);
});

test("an axis of shares has room above the highest value, and none above 100 %", () => {
  expect(topOfShares(0.4)).toBeCloseTo(0.5);
  expect(topOfShares(0.99)).toBe(1);
});

test("an axis of shares never ends below what its ticks can show", () => {
  expect(topOfShares(0.000001)).toBe(0.0005);
  expect(topOfShares(0)).toBe(0.01);
});
