// Sparklines: gaps, lonely values and the running interval.
import { expect, test } from "vitest";
import { paths } from "./spark";

test("a gap ends the line", () => {
  const [ended, running] = paths([1, 2, null, 3, 4], false, 5);
  expect(ended.match(/M/g)).toHaveLength(2);
  expect(running).toBe("");
});

test("the running interval is a path of its own", () => {
  const [ended, running] = paths([1, 1, 4], true, 3);
  expect(ended).toBe("M0.0 17.0L60.0 17.0");
  expect(running).toBe("M60.0 17.0L120.0 2.0");
});

test("a value alone between gaps can be seen", () => {
  expect(paths([null, 5, null], false, 3)[0]).toContain("h0.1");
  expect(paths([5], true, 3).slice(0, 2)).toEqual(["", "M120.0 2.0h0.1"]);
});

test("few values are aligned to the right, the present", () => {
  expect(paths([1, 1], false, 5)[0]).toMatch(/^M90/);
});

test("nothing, zeros and single values draw no NaN", () => {
  for (const values of [[], [0], [0, 0], [null], [null, null]]) {
    expect(paths(values, true, values.length).join("")).not.toContain("NaN");
  }
});

test("the base line is at zero, below or among the values", () => {
  expect(paths([1, 4], false, 2)[2]).toBe("M0 22.0H120");
  expect(paths([-1, 1], false, 2)[2]).toBe("M0 12.0H120");
  expect(paths([], false, 2)[2]).toBe("");
});
