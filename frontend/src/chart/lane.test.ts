// Labels of marks: the newest first, and none above another.
import { expect, test } from "vitest";
import { lane } from "./lane";

test("labels begin at their marks where there is room", () => {
  expect(lane([10, 200], [50, 50], 0, 300, 20)).toEqual([
    { index: 1, from: 200, width: 50, more: 0 },
    { index: 0, from: 10, width: 50, more: 0 },
  ]);
});

test("at the right edge a label is left of its mark", () => {
  expect(lane([290], [50], 0, 300, 20)).toEqual([{ index: 0, from: 250, width: 50, more: 0 }]);
});

test("an older label moves left as long as it touches its mark", () => {
  expect(lane([100, 120], [50, 50], 0, 300, 20).map((place) => place.from)).toEqual([120, 67]);
});

test("a label without room is counted at the newer one", () => {
  expect(lane([100, 101, 102], [50, 50, 50], 80, 300, 20)).toEqual([
    { index: 2, from: 102, width: 70, more: 2 },
  ]);
});

test("no label reaches into another, or out of the lane", () => {
  for (let seed = 1; seed < 200; seed++) {
    const at = Array.from({ length: 12 }, (_, i) => (Math.sin(seed * (i + 1)) + 1) * 150).sort(
      (a, b) => a - b,
    );
    const places = lane(
      at,
      at.map((each) => 20 + (each % 60)),
      0,
      300,
      20,
    );
    expect(places.reduce((sum, place) => sum + 1 + place.more, 0)).toBe(12);
    expect(places[0]?.index).toBe(11);
    places.forEach((place, i) => {
      expect(place.from).toBeGreaterThanOrEqual(0);
      expect(place.from + place.width).toBeLessThanOrEqual((places[i - 1]?.from ?? 302) - 2);
    });
  }
});
