// Names: an entry means one name or none, and never one that was offered for another entry.
import { expect, test } from "vitest";
import { meant, offered, patternOf, refusedOf } from "./names";

test("a text is looked for anywhere, a pattern as it is", () => {
  expect(patternOf("")).toBe("*");
  expect(patternOf("sign")).toBe("*sign*");
  expect(patternOf("sign*")).toBe("sign*");
});

test("a name is offered once, before its label sets", () => {
  expect(offered([['a{x="1"}', 'a{x="2"}'], ["b"]])).toEqual(["a", 'a{x="1"}', 'a{x="2"}', "b"]);
});

test("an entry means itself, or the only name that it can be completed to", () => {
  const names = offered([['revenue{category="black"}', 'revenue{category="green"}'], ["revenue_cents"]]);
  expect(meant("revenue", names)).toBe("revenue");
  expect(meant("reven", names)).toBeNull();
  expect(meant("reven", offered([['revenue{category="black"}']]))).toBe("revenue");
  expect(meant("zzz", [])).toBeNull();
  expect(meant("", ["hits"])).toBeNull();
});

test("what was refused is told by the message, else all of it", () => {
  expect(refusedOf(["hits", "{bad"], "series={bad: it begins with a brace")).toEqual(["{bad"]);
  expect(refusedOf(["hits", "{bad"], "no")).toEqual(["hits", "{bad"]);
});
