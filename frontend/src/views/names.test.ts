// Names: an entry means one name or none, never one that was suggested for another entry.
import { expect, test } from "vitest";
import { meant, offered, patternOf, refusedOf } from "./names";

test("a text is searched for anywhere, a pattern unchanged", () => {
  expect(patternOf("")).toBe("*");
  expect(patternOf("sign")).toBe("*sign*");
  expect(patternOf("sign*")).toBe("sign*");
});

test("a name is suggested once, before its label sets", () => {
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

test("refused names are those in the message, or all of them", () => {
  expect(refusedOf(["hits", "{bad"], "series={bad: it begins with a brace")).toEqual(["{bad"]);
  expect(refusedOf(["hits", "{bad"], "no")).toEqual(["hits", "{bad"]);
});
