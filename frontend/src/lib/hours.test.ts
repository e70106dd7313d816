// Which hours are compared is always stated.
import { expect, test } from "vitest";
import { comparison } from "./hours";

test("sliding hours are named", () => {
  expect(comparison({ compared: 3, clock_hours: 0 })).toBe("last 60 min vs the 60 min before");
});

test("clock hours are named where nothing else is known", () => {
  expect(comparison({ compared: 2, clock_hours: 2 })).toBe(
    "this clock hour vs the same part of the hour before",
  );
});

test("where both occur, the number of those with clock hours is stated", () => {
  expect(comparison({ compared: 3, clock_hours: 1 })).toBe(
    "last 60 min vs the 60 min before; clock hours for 1 of 3 loggers and severities",
  );
});
