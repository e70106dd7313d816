// State to URL and back, and invalid URLs.
import { expect, test } from "vitest";
import { elsewhere, parse, serialise, USUAL, type State } from "./url";

test("the default state has no query", () => {
  expect(serialise(USUAL)).toBe("");
  expect(parse("")).toEqual(USUAL);
});

test("every field survives a round trip through the URL", () => {
  const state: State = {
    view: "series",
    range: 3600,
    paused: true,
    clock: "utc",
    theme: "dark",
    last: null,
    since: 1000,
    until: 2000,
    against: "yesterday",
    explain: "hits",
    mark: 1700000000,
    log: true,
    series: ['a{b="c&d"}', "x=y"],
    hidden: ["p95"],
    tables: ["main"],
    name: "<b>%00\u202e",
    order: "p95",
    kind: "gauge",
    filter: "a*+ b",
    offset: 50,
    logger: "shop.db",
    severity: "error",
  };
  expect(parse(serialise(state))).toEqual(state);
  const now = { ...state, since: null, until: null, last: 3600 };
  expect(parse(serialise(now))).toEqual(now);
});

test("invalid values become defaults", () => {
  for (const query of [
    "?view=admin",
    "?range=0",
    "?range=-60",
    "?range=NaN",
    "?range=1e308",
    "?since=5",
    "?since=9&until=3",
    "?since=9&until=253402300799",
    "?clock=mars",
    "?theme=<script>",
    "?offset=-1",
    "?paused=yes",
    "?unknown=1",
    "?view=series",
    "?%",
  ]) {
    const state = parse(query);
    expect({ ...state, view: "overview" }).toEqual(USUAL);
  }
});

test("lists and texts are bounded", () => {
  const many = Array.from({ length: 10_000 }, (_, i) => `series=s${i}`).join("&");
  expect(parse("?" + many).series).toHaveLength(20);
  expect(parse("?filter=" + "x".repeat(5000)).filter).toHaveLength(1000);
});

test("another view leaves the filter behind, and keeps range, zoom and clock", () => {
  const from = { ...USUAL, range: 5, clock: "utc" as const, since: 1, until: 2, filter: "x" };
  expect(elsewhere(from, "routes", { order: "p95" })).toEqual({
    ...USUAL,
    range: 5,
    since: 1,
    until: 2,
    clock: "utc",
    view: "routes",
    order: "p95",
  });
});
