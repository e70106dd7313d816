// Where the metrics of the status sentence lead: to the explanation of their check.
import type { StatusAnswer } from "../api/types";
import type { State } from "../state/url";

/** The state of the overview that explains a metric since its change began; none if it has no check. */
export function explanationOf(status: StatusAnswer, name: string): Partial<State> | null {
  const check = status.checks.find((each) => each.name === name);
  if (!check) return null;
  return {
    since: Math.floor(Math.min(check.began ?? status.since, status.since)),
    until: Math.ceil(status.until),
    explain: check.explain.failing.length > 0 ? "error rate" : check.name,
  };
}
