// The compared line: shifted, cut, or missing with a reason.
import { expect, test } from "vitest";
import { lineOf } from "../chart/lines";
import { referenceLine } from "./reference";

const hours = (count: number) =>
  lineOf({
    name: "hits",
    kind: "counter",
    precision: 3600,
    start: 0,
    values: Array.from({ length: count }, (_, i) => i),
    partial: true,
  });
const window = { start: 36 * 3600, end: 40 * 3600, shift: null };
const DAY = 24 * 3600;

test("without a zoom or a choice there is no compared line", () => {
  expect(referenceLine(hours(48), window, { since: null, against: "" }).line).toBeNull();
});

test("yesterday's values are shifted by a day, up to the end of the window", () => {
  const chosen = { since: 36 * 3600, against: "yesterday" };
  const { line, note } = referenceLine(hours(48), { ...window, shift: DAY }, chosen);
  expect(line?.start).toBe(24 * 3600);
  expect(line?.values.at(-1)).toBe(15);
  expect(note).toBe("");
  // The clocks changed: the same time of day was 25 hours ago.
  const autumn = referenceLine(hours(48), { ...window, shift: DAY + 3600 }, chosen);
  expect(autumn.line?.start).toBe(25 * 3600);
  expect(autumn.line?.values.at(-1)).toBe(14);
});

test("a coarser precision never replaces one that is not kept", () => {
  const chosen = { since: 36 * 3600, against: "last-week" };
  expect(referenceLine(hours(48), { ...window, shift: 7 * DAY }, chosen)).toEqual({
    line: null,
    note: "hits, last week: not kept by 1 h, which reaches back 2 d.",
  });
});
