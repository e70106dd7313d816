// Is it normal now? One sentence about the last five complete minutes; its nouns are links. It is always of
// now; where the range ends in the past it is small, and the answer for the range follows.
import type { StatusAnswer } from "../api/types";
import { T } from "../parts/text";
import { minuteOf } from "../lib/time";
import { link, past, type Fed } from "../state/live";
import { state as page } from "../state/page";
import { alerts } from "../state/alerts";
import { Go } from "../parts/go";
import { Sentence } from "./sentence";
import { explanationOf } from "./statuslinks";

const LEVELS = { usual: "ok", unusual: "fail", unknown: "unknown" } as const;

export function StatusLine({ data, failure: own }: Fed<StatusAnswer>) {
  // The overview polls more often, so it detects an outage first.
  const failure = link.value.failure?.passing ? link.value.failure : own;
  const firing = (alerts.value?.firing ?? 0) > 0;
  const state = failure ? "unknown" : firing ? "unusual" : data?.state;
  return (
    <section
      class={`status-line ${state === "unusual" && !past.value ? "" : "faint"} ${past.value ? "small" : ""}`}
      aria-label="Status"
    >
      {state && <span class={`dot ${LEVELS[state]}`} aria-hidden="true" />}{" "}
      {failure ? (
        <>
          Status unknown:{" "}
          {failure.status === 0 ? (
            "can't reach the server."
          ) : failure.passing ? (
            "can't reach the store."
          ) : (
            <T text={failure.message} most={300} />
          )}
        </>
      ) : (
        data && (
          <>
            Now, {minuteOf(data.until, page.value.clock)}:{" "}
            <Sentence parts={data.parts} explain={(name) => explanationOf(data, name)} />
            <Firing known={data.firing.length} />
            {data.missing.length > 0 && " A part of the store is unreachable and not included."}
          </>
        )
      )}
    </section>
  );
}

/** Alerts that fire now, as a link, unless the sentence has them: that is of the minute that it judges. */
function Firing({ known }: { known: number }) {
  const firing = alerts.value?.firing ?? 0;
  if (firing <= known) return null;
  return (
    <>
      {" "}
      <span class="dot fail" aria-hidden="true" />{" "}
      <Go view="alerts" class="firing">
        {firing === 1 ? "1 alert firing" : `${firing.toLocaleString("en")} alerts firing`}
      </Go>
      .
    </>
  );
}
