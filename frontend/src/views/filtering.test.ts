// A filter finds names, however many there are.
import { expect, test } from "vitest";
import { nextPlace, patternIn } from "./filtering";

test("a text is searched for anywhere if all names are examined", () => {
  expect(patternIn("anywhere", "event")).toBe("*event*");
  expect(nextPlace("anywhere", "event", { found: 3, total: 900, examined: 900 })).toBe("anywhere");
});

test("among too many names, those are found that begin with the text", () => {
  const few = { found: 1, total: 20_000, examined: 1000 };
  expect(nextPlace("anywhere", "event", few)).toBe("beginning");
  expect(patternIn("beginning", "event")).toBe("event*");
  expect(nextPlace("beginning", "event", few)).toBe("beginning");
});

test("if none begins with it, the first names are searched, and no further place", () => {
  const none = { found: 0, total: 20_000, examined: 1000 };
  expect(nextPlace("beginning", "vent", none)).toBe("first");
  expect(patternIn("first", "vent")).toBe("*vent*");
  expect(nextPlace("first", "vent", none)).toBe("first");
});

test("patterns and an empty filter stay unchanged", () => {
  const few = { found: 1, total: 20_000, examined: 1000 };
  expect(nextPlace("anywhere", "e*t", few)).toBe("anywhere");
  expect(patternIn("beginning", "e*t")).toBe("e*t");
  expect(patternIn("anywhere", "")).toBe("");
});
