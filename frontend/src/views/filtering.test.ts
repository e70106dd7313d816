// A filter finds what is there, however many names there are.
import { expect, test } from "vitest";
import { nextPlace, patternIn } from "./filtering";

test("a text is looked for anywhere, as long as all names are looked at", () => {
  expect(patternIn("anywhere", "event")).toBe("*event*");
  expect(nextPlace("anywhere", "event", { found: 3, total: 900, examined: 900 })).toBe("anywhere");
});

test("of too many names those are found that begin so", () => {
  const few = { found: 1, total: 20_000, examined: 1000 };
  expect(nextPlace("anywhere", "event", few)).toBe("beginning");
  expect(patternIn("beginning", "event")).toBe("event*");
  expect(nextPlace("beginning", "event", few)).toBe("beginning");
});

test("where none begins so it is what the first ones have, and stays that", () => {
  const none = { found: 0, total: 20_000, examined: 1000 };
  expect(nextPlace("beginning", "vent", none)).toBe("first");
  expect(patternIn("first", "vent")).toBe("*vent*");
  expect(nextPlace("first", "vent", none)).toBe("first");
});

test("patterns and no filter are as they are", () => {
  const few = { found: 1, total: 20_000, examined: 1000 };
  expect(nextPlace("anywhere", "e*t", few)).toBe("anywhere");
  expect(patternIn("beginning", "e*t")).toBe("e*t");
  expect(patternIn("anywhere", "")).toBe("");
});
