// Days and hours are those of the page's time zone.
import { expect, test } from "vitest";
import { days, extent, level, placeIn } from "./grid";

const series = (start: number, values: (number | null)[]) =>
  ({ name: "hits", kind: "counter", precision: 3600, start, values, partial: true }) as const;

test("hours are grouped by UTC day, the newest day first", () => {
  const start = Date.UTC(2026, 10, 20, 22) / 1000;
  const grid = days(series(start, [1, 2, 3]), "utc");
  expect(grid.map((day) => day.start)).toEqual([
    Date.UTC(2026, 10, 21) / 1000,
    Date.UTC(2026, 10, 20) / 1000,
  ]);
  expect(grid[1]?.hours.slice(21)).toEqual([undefined, 1, 2]);
  expect(grid[0]?.hours.slice(0, 2)).toEqual([3, undefined]);
});

test("a gap differs from an hour that is not kept", () => {
  expect(days(series(0, [null, 0]), "utc")[0]?.hours.slice(0, 3)).toEqual([null, 0, undefined]);
});

test("levels go from the minimum to the maximum, even if all values are large or negative", () => {
  expect([107, 108, 121, 136].map((value) => level(value, 107, 136))).toEqual([1, 1, 5, 9]);
  expect([-20, -5, 0].map((value) => level(value, -20, 0))).toEqual([1, 7, 9]);
  expect(level(3, 3, 3)).toBe(5);
  expect([1, 99].map((value) => level(value, 5, 10))).toEqual([1, 9]);
});

test("the running hour is not a minimum, and a counter's zero has no level", () => {
  expect(extent(series(0, [7, 0, null, 9, 1]))).toEqual([7, 9]);
  expect(extent({ ...series(0, [0, 5, 9]), kind: "gauge" })).toEqual([0, 5]);
  expect(extent(series(0, [4]))).toBeNull();
});

test("local days begin at local midnight, and every hour is in one of them", () => {
  const start = Date.UTC(2026, 10, 20, 22) / 1000;
  const grid = days(series(start, [1, 2, 3]), "local");
  for (const { start: midnight } of grid) expect(new Date(midnight * 1000).getHours()).toBe(0);
  const [day, hour] = placeIn(start, "local");
  expect(hour).toBe(new Date(start * 1000).getHours());
  expect(grid.find((each) => each.start === day)?.hours[hour]).toBe(1);
  expect(grid.flatMap((each) => each.hours).filter((each) => each !== undefined)).toHaveLength(3);
});
