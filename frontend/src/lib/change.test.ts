// Changes compared with the window before.
import { expect, test } from "vitest";
import { change } from "./change";

test("more errors are bad, fewer are good, more requests are neither", () => {
  expect(change(2, 1, "lower-is-better")).toEqual({ by: 1, text: "+100 %", tone: "bad", direction: "up" });
  expect(change(1, 2, "lower-is-better").tone).toBe("good");
  expect(change(2, 1, "neutral").tone).toBe("neutral");
});

test("an unknown or tiny change is neutral", () => {
  expect(change(null, 1, "lower-is-better").text).toBe("no earlier data");
  expect(change(1, null, "lower-is-better").tone).toBe("neutral");
  expect(change(0, 0, "lower-is-better").text).toBe("unchanged");
  expect(change(1.001, 1, "lower-is-better")).toMatchObject({ text: "unchanged", tone: "neutral" });
});

test("a change of few events within chance is neutral", () => {
  expect(change(0.02, 0.01, "lower-is-better", [24, 11])).toMatchObject({ text: "+100 %", tone: "neutral" });
  expect(change(0.02, 0.01, "lower-is-better", [240, 110]).tone).toBe("bad");
  expect(change(0.01, 0.02, "lower-is-better", [110, 240]).tone).toBe("good");
  expect(change(3, 0, "lower-is-better", [3, 0]).tone).toBe("neutral");
  expect(change(0.22, 0.2, "lower-is-better").tone).toBe("neutral");
});

test("a change from zero has no percentage", () => {
  expect(change(3, 0, "lower-is-better")).toMatchObject({ by: null, text: "was 0", tone: "bad" });
});

test("large changes are multiples", () => {
  expect(change(1200, 100, "neutral").text).toBe("× 12");
  expect(change(1, 4, "neutral").text).toBe("−75 %");
  expect(change(1.052, 1, "neutral").text).toBe("+5.2 %");
});
