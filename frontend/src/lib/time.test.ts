// Moments as text. Only UTC is compared, since local time depends on the machine.
import { expect, test } from "vitest";
import { ago, momentOf, intervalOf, tickOf } from "./time";

const AT = Date.UTC(2026, 10, 21, 0, 3, 9) / 1000;

test("midnight is 00, not 24", () => {
  expect(momentOf(AT, "utc")).toBe("21 Nov 2026, 00:03:09");
});

test("an interval is written as exactly as its precision", () => {
  expect([1, 60, 3600, 86_400].map((p) => intervalOf(AT, p, "utc"))).toEqual([
    "00:03:09",
    "00:03",
    "21 Nov, 00:03",
    "Sat 21 Nov",
  ]);
});

test("intervals of a day are UTC days with either clock", () => {
  expect(intervalOf(AT - 189, 86_400, "local")).toBe("Sat 21 Nov");
});

test("midnight on an axis is the day", () => {
  expect(tickOf(AT - 189, 3600, 60, "utc")).toBe("21 Nov");
  expect(tickOf(AT - 9, 60, 60, "utc")).toBe("00:03");
  expect(tickOf(AT, 1, 1, "utc")).toBe("00:03:09");
});

test("how long ago", () => {
  expect([0.4, 5, 119, 180, 7200, 200_000, -5].map((past) => ago(100 - past, 100))).toEqual([
    "now",
    "5 s ago",
    "119 s ago",
    "3 min ago",
    "2 h ago",
    "2 d ago",
    "in 5 s",
  ]);
});
