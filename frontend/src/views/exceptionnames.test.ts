// Short names of exceptions.
import { expect, test } from "vitest";
import { countLine, typeOf } from "./exceptionnames";

test("the module of a class is left out, other texts stay", () => {
  expect(["shop.errors.PaymentFailed", "KeyError", "<b>a.b</b>", ""].map(typeOf)).toEqual([
    "PaymentFailed",
    "KeyError",
    "<b>a.b</b>",
    "",
  ]);
});

test("counts are a line of counts from the start of the window", () => {
  const line = countLine({
    series: { name: "g", precision: 300, start: 600, values: [0, 3], partial: true, window: null },
  });
  expect([line.start, line.precision, line.values, line.sums]).toEqual([600, 300, [0, 3], true]);
});
