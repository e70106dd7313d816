// Cells of CSV.
import { expect, test } from "vitest";
import { cell, csvOf, flow, shared } from "./share";
import { lineOf } from "./lines";

test("a text that looks like a formula stays text in a spreadsheet", () => {
  expect(cell("=1+2")).toBe("'=1+2");
  expect(cell('a,"b"')).toBe('"a,""b"""');
});

test("values by interval, gaps empty, only those in view", () => {
  const series = { name: "a,b", kind: "counter" as const, precision: 60, start: 60, partial: false };
  shared.value = [lineOf({ ...series, values: [1, null, 3] })];
  expect(csvOf({ from: 60, to: 180 })).toBe(
    'time,"a,b"\r\n1970-01-01T00:01:00.000Z,1\r\n1970-01-01T00:02:00.000Z,',
  );
});

test("the names of a picture's legend are side by side, and wrap", () => {
  expect(flow([40, 50, 20, 200], 100)).toEqual([
    [0, 0],
    [40, 0],
    [0, 1],
    [0, 2],
  ]);
});
