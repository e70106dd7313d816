// The routes and tasks that fail, or are slower or busier than expected, with the reason: of now by the status,
// of a range in the past by its explanations.
import type { ChangedGroup, ExplainAnswer, StatusAnswer } from "../api/types";
import { value, type Unit } from "../lib/units";

export interface Standout {
  kind: "route" | "task";
  name: string;
  /** "error rate 38 % (usually 0.4 %)"; several are joined. */
  reason: string;
}

type Check = StatusAnswer["checks"][number];

/** Measures, the most urgent first. */
const URGENCY: readonly string[] = ["error rate", "failures", "requests", "p95", "client errors"];

const SIDES = ["route", "task"] as const;

const reasonOf = (
  measure: string,
  after: number | null,
  before: number | null,
  unit: string,
  usual: string,
) => `${measure} ${value(after, unit as Unit)} (${usual} ${value(before, unit as Unit)})`;

/** One entry for each name, in the order of their first reasons. */
function merged(all: readonly Standout[]): Standout[] {
  const by = new Map<string, Standout>();
  for (const each of all) {
    const key = `${each.kind} ${each.name}`;
    const known = by.get(key);
    if (!known) by.set(key, { ...each });
    else if (!known.reason.includes(each.reason.split(" (")[0] ?? "")) known.reason += `, ${each.reason}`;
  }
  return [...by.values()];
}

function ofGroups(groups: readonly ChangedGroup[], measure: string, unit: string, usual: string): Standout[] {
  return groups.flatMap(({ label, value: name, before, after }) => {
    const kind = SIDES.find((each) => each === label);
    return kind && name !== null
      ? [{ kind, name, reason: reasonOf(measure, after, before, unit, usual) }]
      : [];
  });
}

const size = ({ value, mid, count }: Check) => Math.abs((value ?? 0) - (mid ?? 0)) * Math.max(1, count);

/** Those of the last five complete minutes. */
export function standoutsNow(checks: readonly Check[]): Standout[] {
  const bad = checks.filter(({ state }) => state === "high" || state === "low");
  const rank = ({ measure }: Check) => URGENCY.indexOf(measure);
  return merged(
    [...bad]
      .sort((a, b) => rank(a) - rank(b) || size(b) - size(a))
      .flatMap(({ measure, unit, labels, value: after, mid, causes }) => {
        const kind = SIDES.find((each) => labels[each] !== undefined);
        if (!kind) return ofGroups(causes, measure, unit, "usually");
        return [{ kind, name: labels[kind] ?? "", reason: reasonOf(measure, after, mid, unit, "usually") }];
      }),
  );
}

/** Those of a range in the past. */
export function standoutsOf(answers: readonly (ExplainAnswer | null)[]): Standout[] {
  return merged(
    answers.flatMap((answer) =>
      answer
        ? ofGroups(
            answer.causes,
            answer.measure === "count" ? "requests" : answer.measure,
            answer.measure === "error rate" ? "ratio" : answer.unit,
            "before",
          )
        : [],
    ),
  );
}
