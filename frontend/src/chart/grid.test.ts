// Days and hours are those of UTC.
import { expect, test } from "vitest";
import { days, level } from "./grid";

const series = (start: number, values: (number | null)[]) =>
  ({ name: "hits", kind: "counter", precision: 3600, start, values, partial: true }) as const;

test("hours lie in their UTC day, the newest day first", () => {
  const start = Date.UTC(2026, 10, 20, 22) / 1000;
  const found = days(series(start, [1, 2, 3]));
  expect(found.map((day) => day.start)).toEqual([
    Date.UTC(2026, 10, 21) / 1000,
    Date.UTC(2026, 10, 20) / 1000,
  ]);
  expect(found[1]?.hours.slice(21)).toEqual([undefined, 1, 2]);
  expect(found[0]?.hours.slice(0, 2)).toEqual([3, undefined]);
});

test("a gap is not the same as what is not kept", () => {
  expect(days(series(0, [null, 0]))[0]?.hours.slice(0, 3)).toEqual([null, 0, undefined]);
});

test("levels go from nothing to the most", () => {
  expect([0, 0.001, 5, 10].map((value) => level(value, 10))).toEqual([0, 1, 5, 9]);
  expect(level(3, 0)).toBe(0);
});
