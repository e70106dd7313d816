// Status classes, and the parts of a response time.
import { expect, test } from "vitest";
import { classOf, shares, statusLines } from "./routelines";

const series = (status: string | null, start: number, values: number[]) => ({
  name: "http_requests",
  kind: "counter" as const,
  precision: 60,
  start,
  values,
  partial: true,
  labels: { status },
});

test("statuses of a class are one line, successes first", () => {
  const lines = statusLines([
    series("503", 60, [1, 2]),
    series("500", 0, [5, 1, 1]),
    series("2xx", 0, [9, 9, 9]),
  ] as never);
  expect(lines.map((line) => [line.key, line.start, line.values])).toEqual([
    ["2xx", 0, [9, 9, 9]],
    ["5xx", 0, [5, 2, 3]],
  ]);
  expect(classOf(null)).toBe("other");
});

test("the time outside the database is the remainder, never below zero", () => {
  expect(shares(0.2, 0.05).map((each) => each.share)).toEqual(
    [0.25, 0.75].map((each) => expect.closeTo(each)),
  );
  expect(shares(0.2, 0.3)[1]?.mean).toBe(0);
  expect(shares(0.2, null)).toEqual([]);
});
