// Time before the retention is distinct from time without events.
import { expect, test } from "vitest";
import { keptSince } from "./retention";

const store = { retention: { "60": 3, "3600": 120 }, histograms: { "3600": 2 } };

test("as many intervals as the store keeps, the running one among them", () => {
  expect(keptSince({ kind: "counter", precision: 60 }, store, 605)).toBe(480);
});

test("histograms have a retention of their own", () => {
  expect(keptSince({ kind: "histogram", precision: 3600 }, store, 7300)).toBe(3600);
});

test("nothing is hatched if the retention is unknown", () => {
  expect(keptSince({ kind: "counter", precision: 5 }, store, 605)).toBeNull();
  expect(keptSince({ kind: "counter", precision: 60 }, null, 605)).toBeNull();
});
