// Lists of very many series state how they were ranked.
import { expect, test } from "vitest";
import { madeFrom, nextRows, reachable } from "./ranking";

const NOW = 1_700_000_000;

test("a list of all series needs no note", () => {
  expect(madeFrom({ examined: 900, total: 900, ranked_at: null }, NOW, true)).toBe("");
});

test("until all series are ranked, the list states that it covers the first by name", () => {
  const answer = { examined: 1000, total: 20_000, ranked_at: null };
  expect(madeFrom(answer, NOW, true)).toBe(", from the first 1,000 of 20,000 series by name; ranking all …");
  expect(madeFrom(answer, NOW, false)).toBe(", from the first 1,000 of 20,000 series by name");
});

test("a ranking shows its age and the number of series that it covers", () => {
  const ranked = { examined: 20_000, total: 20_000, ranked_at: NOW - 40 };
  expect(madeFrom(ranked, NOW, true)).toBe(", ranked 40 s ago from 20,000 series");
  expect(madeFrom({ ...ranked, total: 20_010 }, NOW, true)).toBe(
    ", ranked 40 s ago from 20,000 of 20,010 series",
  );
});

test("a ranking of more series than it can read covers the first by name", () => {
  const answer = { examined: 100_000, total: 250_000, ranked_at: NOW - 400 };
  expect(madeFrom(answer, NOW, true)).toBe(", ranked 6 min ago from the first 100k of 250k series by name");
});

test("a ranking keeps its first rows", () => {
  expect(reachable({ found: 12_345, ranked_at: NOW })).toBe(1000);
  expect(reachable({ found: 12, ranked_at: NOW })).toBe(12);
  expect(reachable({ found: 12_345, ranked_at: null })).toBe(12_345);
});

test("a row is a name, unless there are more names than a ranking keeps", () => {
  const few = { found: 3, examined: 1000, total: 10_000, ranked_at: null };
  expect(nextRows("names", few)).toBe("names");
  expect(nextRows("names", { ...few, ranked_at: NOW, examined: 10_000 })).toBe("names");
  expect(nextRows("names", { ...few, found: 1000 })).toBe("label sets");
  expect(nextRows("names", { ...few, found: 1200, ranked_at: NOW })).toBe("label sets");
  expect(nextRows("label sets", few)).toBe("label sets");
});

test("gauges are listed one by one until they are many", () => {
  const some = { found: 50, examined: 50, total: 50, ranked_at: null };
  expect(nextRows("few gauges", some)).toBe("few gauges");
  expect(nextRows("few gauges", { ...some, total: 51 })).toBe("names");
});
