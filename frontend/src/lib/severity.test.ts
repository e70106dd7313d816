// The severities that a filter stands for.
import { expect, test } from "vitest";
import { ERRORS, severitiesOf } from "./severity";

test("errors are two severities, any other filter is one, and none is all", () => {
  expect(severitiesOf(ERRORS)).toEqual(["critical", "error"]);
  expect(severitiesOf("error")).toEqual(["error"]);
  expect(severitiesOf("a,b")).toEqual(["a,b"]);
  expect(severitiesOf("")).toEqual([]);
});
