// Values in their units.
import { expect, test } from "vitest";
import { bytes, number, percent, seconds, unitOf, value } from "./units";

test("the end of the name says the unit, labels do not", () => {
  expect(unitOf("http_request_seconds")).toBe("seconds");
  expect(unitOf('cache_bytes{of="x_seconds"}')).toBe("bytes");
  expect(unitOf("process_cpu_ratio")).toBe("ratio");
  expect(unitOf("milliseconds")).toBe("");
  expect(unitOf("hits")).toBe("");
});

test("durations go from microseconds to days", () => {
  expect([0, 0.0000021, 0.0123, 0.9999, 1.5, 90, 600, 7200, 1e6].map(seconds)).toEqual([
    "0 s",
    "2.1 µs",
    "12.3 ms",
    "1 s",
    "1.5 s",
    "90 s",
    "10 min",
    "2 h",
    "11.6 d",
  ]);
});

test("numbers are full up to a hundred thousand", () => {
  expect([0, 7, 0.123456, 1234, 99_999, 123_456, 1.5e6, -2.5e9, 1e20].map(number)).toEqual([
    "0",
    "7",
    "0.12",
    "1,234",
    "99,999",
    "123k",
    "1.5M",
    "-2.5G",
    "1.00e+20",
  ]);
});

test("bytes and shares", () => {
  expect([0, 999, 1500, 7_340_000].map(bytes)).toEqual(["0 B", "999 B", "1.5 kB", "7.34 MB"]);
  expect([0, 0.00001, 0.0123, 0.5, 1].map(percent)).toEqual(["0 %", "< 0.01 %", "1.2 %", "50 %", "100 %"]);
});

test("what is not there is a dash, never NaN", () => {
  expect([null, undefined, NaN, Infinity].map((v) => value(v, "seconds"))).toEqual(["–", "–", "–", "–"]);
});
