// Explains a change within the zoom: contributions of label values, log patterns, marks, the database.
import { address } from "../api/client";
import type { ChangedGroup, ExplainAnswer } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { number, percent, seconds, value, type Unit } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { past, useFeed } from "../state/live";
import { set, state } from "../state/page";
import { typeOf } from "./exceptionnames";
import { Patterns } from "./patterns";
import { Sentence } from "./sentence";

/** Milliseconds between two requests: a window in the past rarely changes. */
const EVERY = 30_000;
/** Maximum number of groups per label. */
const GROUPS = 6;

const MEASURES = [
  { value: "hits", text: "Requests" },
  { value: "error rate", text: "Error rate" },
  { value: "hits_seconds", text: "p95 response time" },
];

/** The request that explains a measure within the zoom; "" without a zoom. */
function pathOf(measure: string): string {
  const { since, until, against } = state.value;
  const failing = measure === "error rate";
  if (since === null || until === null) return "";
  return address("explain", {
    name: failing ? "http_requests" : measure,
    failing: failing ? "status=5xx" : null,
    since,
    until,
    against: against || "previous",
  });
}

export function ExplainPanel() {
  const { explain } = state.value;
  const path = explain ? pathOf(explain) : "";
  return path ? <Explained path={path} /> : null;
}

/** What stands out of a range in the past, by each measure. */
export function useRangeAnswers() {
  return MEASURES.map(({ value, text }) => {
    const { data, stale } = useFeed<ExplainAnswer>(past.value ? pathOf(value) : "", EVERY, false);
    return { value, text, answer: past.value && !stale ? data : null };
  });
}

/** Its sentences, above the chart, each with the way to its details. */
export function RangeAnswer({ answers }: { answers: ReturnType<typeof useRangeAnswers> }) {
  if (!past.value || state.value.explain !== "") return null;
  const known = answers.flatMap(({ answer, ...measure }) => (answer ? [{ ...measure, answer }] : []));
  const causes = known.filter(
    ({ answer: { state: of, changed, uneven } }) => of === "not kept" || changed || uneven,
  );
  const nothing = known.every(({ answer }) => answer.state === "no data")
    ? "In this range there are no requests."
    : "In this range nothing stands out.";
  return (
    <section class="status-line" aria-label="This range" aria-busy={known.length < answers.length}>
      {causes.map(({ value, text, answer }) => (
        <p key={value}>
          {answer.state === "compared" ? (
            <Sentence parts={answer.parts} />
          ) : (
            <span class="faint">
              {text}: <T text={answer.reason} most={400} />
            </span>
          )}{" "}
          <button type="button" class="quiet" onClick={() => set({ explain: value, mark: null }, true)}>
            Details
          </button>
        </p>
      ))}
      {known.length === answers.length && causes.length === 0 && nothing}
    </section>
  );
}

function Explained({ path }: { path: string }) {
  const fed = useFeed<ExplainAnswer>(path, EVERY);
  const { explain } = state.value;
  const web = MEASURES.some((each) => each.value === explain);
  return (
    <Card
      title="What changed here"
      class="explain"
      actions={
        <>
          {web && (
            <Choice
              label="Measure"
              options={MEASURES}
              chosen={explain}
              choose={(next) => set({ explain: next }, true)}
            />
          )}
          <button type="button" class="quiet" onClick={() => set({ explain: "" }, true)}>
            Close
          </button>
        </>
      }
    >
      <Gate fed={fed}>{(answer) => <Body answer={answer} />}</Gate>
    </Card>
  );
}

function Body({ answer }: { answer: ExplainAnswer }) {
  const { state: outcome, reason, parts, dimensions, messages, exceptions, marks, database } = answer;
  const { clock } = state.value;
  const rest = answer.not_compared;
  const unit = (answer.measure === "error rate" ? "ratio" : answer.unit) as Unit;
  if (outcome !== "compared")
    return (
      <p class="verdict-line">
        <T text={reason} most={400} />
      </p>
    );
  return (
    <>
      <p class="verdict-line">
        <Sentence parts={parts} />
      </p>
      <div class="panels even">
        {dimensions.map(({ label, groups, of }) => (
          <section key={label} aria-label={`By ${label}`}>
            <p class="level">
              <span>
                By <T text={label} most={60} />
              </span>
              {of > GROUPS && (
                <span class="faint">
                  the {GROUPS} that changed most of {number(of)}
                </span>
              )}
            </p>
            <ul class="breakdown">
              {groups.slice(0, GROUPS).map((group) => (
                <Row key={group.value ?? ""} group={group} unit={unit} />
              ))}
            </ul>
          </section>
        ))}
      </div>
      <Patterns {...messages} />
      <Exceptions {...exceptions} />
      {marks.length > 0 && (
        <p class="fine">
          Marks:{" "}
          {marks.map((mark) => (
            <button
              type="button"
              class="noun"
              key={mark.time}
              onClick={() => set({ mark: Math.floor(mark.time), explain: "" }, true)}
            >
              <T text={mark.label} most={60} /> {momentOf(mark.time, clock)}
            </button>
          ))}
        </p>
      )}
      {database?.after != null && (
        <p class="fine">
          Database: {seconds(database.after)} per request
          {database.before !== null && `, ${seconds(database.before)} before`}.
        </p>
      )}
      {rest.length > 0 && (
        <p class="fine">
          Not compared: <T text={rest.join("; ")} most={400} />.
        </p>
      )}
    </>
  );
}

const KINDS = { new: "new", more: "spiking", fewer: "gone", vanished: "gone" } as const;

/** Exceptions with a changed rate. If they were not compared, the reason is in the list of omissions. */
function Exceptions({ groups, precision }: ExplainAnswer["exceptions"]) {
  if (groups.length === 0) return null;
  return (
    <section aria-label="Exceptions">
      <p class="fine">Exceptions{precision !== null && `, by ${durationLabel(precision)}`}</p>
      <ul class="messages">
        {groups.map(({ id, kind, type, message, place, before, count }) => (
          <li key={id}>
            <span class={`what ${KINDS[kind]}`}>{kind === "vanished" ? "gone" : kind}</span>
            <div class="grow">
              <Go view="exception" more={{ name: id }}>
                <T text={typeOf(type)} most={120} />
              </Go>
              <p class="message-about">
                <T text={message} most={160} />{" "}
                <span class="faint">
                  <T text={place} most={120} />
                </span>
              </p>
            </div>
            <p class="message-count">
              {number(Math.round(before))} → <b>{number(count)}</b>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Row({ group, unit }: { group: ChangedGroup; unit: Unit }) {
  const { label, value: name, before, after, change, share, named } = group;
  const text = name === null ? <span class="faint">(without)</span> : <T text={name} most={80} />;
  return (
    <li class={named ? "named-cause" : ""}>
      <span class="grow">
        {label === "route" && name !== null ? (
          <Go view="route" more={{ name }}>
            {text}
          </Go>
        ) : (
          text
        )}
      </span>
      <span class="figure">
        {value(before, unit)} → {value(after, unit)}
      </span>
      <span class="figure" title={share === null ? "effect on the total" : "share of the change"}>
        {share === null ? `${(change ?? 0) > 0 ? "+" : ""}${value(change, unit)}` : percent(share)}
      </span>
    </li>
  );
}
