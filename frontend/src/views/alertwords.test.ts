// Words of the alerts view.
import { expect, test } from "vitest";
import { around, firingOf, literal, placeOf, span, summary, windowOf } from "./alertwords";

test("a silence covers one alert, with any characters in its name", () => {
  expect(literal('errors{route="/a[b]*?"}')).toBe('errors{route="/a[[]b][*][?]"}');
});

test("windows name their days and times", () => {
  const window = { alerts: ["*"], active: false, begin: 1380, end: 65 };
  expect(windowOf({ ...window, days: [5, 6] })).toBe("Sat, Sun 23:00 to 01:05 UTC");
  expect(windowOf({ ...window, days: [0, 1, 2, 3, 4, 5, 6] })).toBe("daily 23:00 to 01:05 UTC");
});

test("alerts are counted by status, values of labels too", () => {
  expect(summary({ rules: [] })).toBe("0 firing");
  const alert = (status: "firing" | "pending" | "ok") => ({ status }) as never;
  const rules = [
    { alerts: [alert("firing"), alert("pending")], ok: 1200 },
    { alerts: [alert("ok")], ok: 0 },
  ] as never;
  expect(summary({ rules })).toBe("1 firing, 1 pending, 1,201 ok");
});

test("a duration has whole units, and a chart ends no later than now", () => {
  expect([span(-3), span(119.9), span(7199), span(90_000), span(200_000)]).toEqual([
    "0 s",
    "119 s",
    "119 min",
    "25 h",
    "2 d",
  ]);
  expect(around(10_000.5, 10_100.2)).toEqual({ since: 8200, until: 10_101 });
  expect(around(10_000, 99_000)).toEqual({ since: 8200, until: 11_800 });
});

test("an alert fires until it is resolved, or until now", () => {
  const transitions = [
    { name: 'slow{route="/a"}', time: 90, status: "firing" },
    { name: 'slow{route="/b"}', time: 80, status: "resolved" },
    { name: 'slow{route="/b"}', time: 60, status: "firing" },
    { name: "other", time: 50, status: "firing" },
  ];
  const rules = [
    { name: "slow", metric: "seconds", by: "route" },
    { name: "other", metric: "hits", by: "" },
  ];
  const answer = { rules, transitions, now: 100 } as never;
  const a = { name: 'slow{route="/a"}', from: 90, to: 100 };
  const b = { name: 'slow{route="/b"}', from: 60, to: 80 };
  expect(firingOf(answer, "seconds")).toEqual([a, b]);
  expect(firingOf(answer, 'seconds{route="/b",x="1"}')).toEqual([b]);
  expect(firingOf(answer, "hits")).toEqual([{ name: "other", from: 50, to: 100 }]);
});

test("alerts about news lead to the group that they found", () => {
  const window = { since: 100, until: 200 };
  expect(placeOf({ when: "new_exception", name: "e" }, 'e{type="shop.Refused"}', window)).toEqual({
    view: "exceptions",
    more: { filter: "shop.Refused", order: "first", ...window },
  });
  expect(placeOf({ when: "new_pattern", name: "m" }, 'm{logger="shop"}', window)).toEqual({
    view: "messages",
    more: { logger: "shop", ...window },
  });
});
