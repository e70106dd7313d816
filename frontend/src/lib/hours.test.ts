// Which hours are compared is always stated.
import { expect, test } from "vitest";
import { comparison } from "./hours";

test("sliding hours are named", () => {
  expect(comparison({ compared: 3, clock_hours: 0 })).toBe("last 60 minutes against the 60 minutes before");
});

test("clock hours are named where nothing else is known", () => {
  expect(comparison({ compared: 2, clock_hours: 2 })).toBe(
    "this clock hour against as much of the clock hour before",
  );
});

test("where both occur, it is stated how many have clock hours", () => {
  expect(comparison({ compared: 3, clock_hours: 1 })).toBe(
    "last 60 minutes against the 60 minutes before; clock hours for 1 of 3 loggers and severities",
  );
});
