// Values in their units.
import { expect, test } from "vitest";
import { bytes, memory, number, percent, rate, seconds, spaced, unitOf, value } from "./units";

test("the suffix of the name determines the unit, labels do not", () => {
  expect(unitOf("http_request_seconds")).toBe("seconds");
  expect(unitOf('cache_bytes{of="x_seconds"}')).toBe("bytes");
  expect(unitOf("process_cpu_ratio")).toBe("ratio");
  expect(unitOf("milliseconds")).toBe("");
  expect(unitOf("hits")).toBe("");
});

test("durations go from nanoseconds to days", () => {
  expect([0, 9.7e-10, 0.0000021, 0.0123, 0.9999, 1.5, 90, 600, 7200, 1e6].map(seconds)).toEqual([
    "0 s",
    "0.97 ns",
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
  expect([0, 7, 0.123456, 1234, 99_999, 123_456, 1.5e6, -2.5e9, 9.01e15, 1e20, 1e22].map(number)).toEqual([
    "0",
    "7",
    "0.12",
    "1,234",
    "99,999",
    "123k",
    "1.5M",
    "−2.5G",
    "9.01P",
    "100E",
    "1.00e+22",
  ]);
});

test("bytes and shares", () => {
  expect([0, 999, 1500, 7_340_000].map(bytes)).toEqual(["0 B", "999 B", "1.5 kB", "7.34 MB"]);
  expect([0, 0.00001, 0.0123, 0.5, 1].map(percent)).toEqual(["0 %", "< 0.01 %", "1.2 %", "50 %", "100 %"]);
});

test("a server's memory is in binary units, as the server reports it", () => {
  expect([0, 1023, 1_677_722, 3 * 2 ** 30].map(memory)).toEqual(["0 B", "1,023 B", "1.6 MiB", "3 GiB"]);
});

test("a rare event is shown per hour or per day", () => {
  expect([0, 12.34, 0.1, 0.05, 0.001, 0.0000032].map(rate)).toEqual([
    "0 per second",
    "12.3 per second",
    "0.1 per second",
    "3 per minute",
    "3.6 per hour",
    "0.28 per day",
  ]);
});

test("a missing value is a dash, never NaN", () => {
  expect([null, undefined, NaN, Infinity].map((v) => value(v, "seconds"))).toEqual(["–", "–", "–", "–"]);
});

test("durations in a text are written as elsewhere, names are left alone", () => {
  expect(spaced("3 seen within 3m, 12 at 1s (5m): host-3d")).toBe(
    "3 seen within 3 min, 12 at 1 s (5 min): host-3d",
  );
});
