// Rows that stand out come first, the most urgent first, each once.
import { expect, test } from "vitest";
import type { StatusAnswer } from "../api/types";
import { standoutsNow, standoutsOf } from "./standouts";

type Check = StatusAnswer["checks"][number];

const check = (more: Partial<Check>) =>
  ({ state: "high", unit: "ratio", labels: {}, count: 100, causes: [], value: 0, mid: 0, ...more }) as Check;
const group = { label: "route", value: "/buy", before: 0.01, after: 0.4 } as Check["causes"][number];

test("routes and tasks that fail come before slow ones; what is as expected is not listed", () => {
  const checks = [
    check({ measure: "p95", unit: "seconds", labels: { route: "/search" }, value: 1.2, mid: 0.1 }),
    check({ measure: "error rate", causes: [group] }),
    check({ measure: "error rate", labels: { route: "/buy" }, value: 0.4, mid: 0.01 }),
    check({ measure: "failures", labels: { task: "mail" }, value: 0.6, mid: 0 }),
    check({ measure: "error rate", labels: { route: "/" }, state: "usual" }),
  ];
  expect(standoutsNow(checks)).toEqual([
    { kind: "route", name: "/buy", reason: "error rate 40 % (usually 1 %)" },
    { kind: "task", name: "mail", reason: "failures 60 % (usually 0 %)" },
    { kind: "route", name: "/search", reason: "p95 1.2 s (usually 100 ms)" },
  ]);
});

test("a range in the past has the causes of its explanations", () => {
  const answer = { measure: "error rate", unit: "", causes: [group, { ...group, label: "method" }] };
  expect(standoutsOf([null, answer as never])).toEqual([
    { kind: "route", name: "/buy", reason: "error rate 40 % (before 1 %)" },
  ]);
});
