// Anomalies for every view: by the status now, by its explanations for a range in the past.
import { address } from "../api/client";
import type { StatusAnswer } from "../api/types";
import { past, useFeed } from "../state/live";
import { useRangeAnswers } from "./explainpanel";
import { failingOf, standoutsNow, standoutsOf, type Standout } from "./standouts";

/** Milliseconds between two requests for the status, which changes each minute. */
const STATUS_EVERY = 15_000;

/** The status, which is always of now; the answers for a range in the past; and the anomalies of the range. */
export function useJudgment() {
  const status = useFeed<StatusAnswer>(address("status"), STATUS_EVERY, false);
  const answers = useRangeAnswers();
  const standouts = past.value
    ? standoutsOf(answers.map(({ answer }) => answer))
    : standoutsNow(status.data?.checks ?? []);
  return { status, answers, standouts };
}

/** Why a route or task is listed among them; "" if it is not. */
export function useReason(kind: Standout["kind"], name: string): string {
  return useJudgment().standouts.find((each) => each.kind === kind && each.name === name)?.reason ?? "";
}

/** The names of the routes or tasks that fail more than expected. */
export function useFailing(kind: Standout["kind"]): ReadonlySet<string> {
  return failingOf(useJudgment().standouts, kind);
}
