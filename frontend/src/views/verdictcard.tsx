// The verdict on a deploy: whether error rates and response times are better, worse or the same since a mark.
import { useEffect, useRef } from "preact/hooks";
import { address } from "../api/client";
import type { Mark, VerdictAnswer, VerdictMetric, VerdictRow } from "../api/types";
import { plain } from "../lib/text";
import { durationLabel } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { number, value, type Unit } from "../lib/units";
import { Card } from "../parts/card";
import { Choice } from "../parts/choice";
import { Code } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { Table } from "../parts/table";
import { T } from "../parts/text";
import { announce } from "../state/announce";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { Patterns } from "./patterns";
import { testLines, trafficChange } from "./verdicttests";

/** Milliseconds between two requests. */
const EVERY = 15_000;
/** Maximum number of routes. */
const ROUTES = 20;

const TONES: Record<string, string> = { worse: "bad", watching: "warn", better: "good" };
const AGAINST = [
  { value: "", text: "The time before" },
  { value: "yesterday", text: "Yesterday" },
  { value: "last-week", text: "Last week" },
] as const;

export function VerdictCard({ marks }: { marks: readonly Mark[] }) {
  const { mark } = state.value;
  if (mark === null) return null;
  const label = marks.findLast((each) => Math.floor(each.time) === mark)?.label;
  return <Judged since={mark} label={label ?? ""} />;
}

function Judged({ since, label }: { since: number; label: string }) {
  const { against, clock } = state.value;
  const top = useRef<HTMLDivElement>(null);
  const fed = useFeed<VerdictAnswer>(
    address("verdict", { since, against: against === "" ? "previous" : against }),
    EVERY,
    false,
  );
  const verdict = fed.data && !fed.stale ? fed.data.verdict : "";
  useEffect(() => top.current?.scrollIntoView({ block: "nearest" }), [since]);
  useEffect(() => {
    if (verdict) announce(`Deploy verdict${label && ` on ${plain(label, 60)}`}: ${verdict}.`);
  }, [since, against, verdict]);
  return (
    <div ref={top}>
      <Card
        title="Deploy verdict"
        class="verdict-card"
        about={
          <>
            {label && (
              <>
                <T text={label} most={60} />,{" "}
              </>
            )}
            {momentOf(since, clock)}
          </>
        }
        actions={
          <>
            <Choice
              label="Compared with"
              options={AGAINST}
              chosen={against}
              choose={(next) => set({ against: next }, true)}
            />
            <button type="button" class="quiet" onClick={() => set({ mark: null }, true)}>
              Close
            </button>
          </>
        }
      >
        <Gate fed={fed}>{(answer) => <Body answer={answer} />}</Gate>
      </Card>
    </div>
  );
}

function Verdict({ verdict }: { verdict: string }) {
  return <span class={`pill ${TONES[verdict] ?? ""}`}>{verdict}</span>;
}

function Body({ answer }: { answer: VerdictAnswer }) {
  const { verdict, reason, look, next_look: next, precision, overall, routes, patterns } = answer;
  const { clock } = state.value;
  const rows = overall ? [overall, ...routes.slice(0, ROUTES)] : [];
  return (
    <>
      <p class="verdict-line">
        <Verdict verdict={verdict} /> <T text={reason} most={400} />
        <span class="faint">
          {look !== null && ` After ${durationLabel(look)}, by ${durationLabel(precision)}.`}
          {answer.noise !== null &&
            ` The noise of error rates is that of ${durationLabel(answer.noise.until - answer.noise.since)} of 5-minute sums before.`}
          {next !== null && ` Next look at ${momentOf(next, clock)}.`}
        </span>
      </p>
      {answer.mix.reason !== "" && !reason.includes(answer.mix.reason) && (
        <p class="verdict-line">
          Mix of routes: <T text={answer.mix.reason} most={400} />
        </p>
      )}
      {answer.not_kept && answer.not_kept.command !== "" && (
        <div class="verdict-line">
          To keep as much from now on: <Code code={answer.not_kept.command} />
        </div>
      )}
      {rows.length > 0 && <Rows rows={rows} />}
      {overall && answer.routes_of > Math.min(ROUTES, routes.length) && (
        <p class="fine">
          {Math.min(ROUTES, routes.length)} of {number(answer.routes_of)} routes: worse and better ones first.
        </p>
      )}
      {rows.length > 0 && (
        <details class="tests">
          <summary>Tests: {number(answer.tests)} share an error budget</summary>
          <ul class="fine">
            {testLines(rows).map((line) => (
              <li key={`${line.route} ${line.measure}`}>
                {line.route === null ? "All requests" : <T text={line.route} most={120} />}, {line.measure}:{" "}
                {line.verdict} (<T text={line.how} most={300} />)
              </li>
            ))}
          </ul>
        </details>
      )}
      {patterns.kept ? (
        look !== null && <Patterns {...patterns} />
      ) : (
        <p class="fine">Log patterns are compared for two hours after a mark.</p>
      )}
      {answer.marks.length > 0 && (
        <p class="fine">
          Other marks in the compared time:{" "}
          <T text={answer.marks.map((each) => each.label).join(", ")} most={300} />
        </p>
      )}
    </>
  );
}

function Rows({ rows }: { rows: readonly VerdictRow[] }) {
  return (
    <Table
      label="Deploy verdict"
      class="named verdicts"
      rows={rows}
      keyOf={(row) => row.route ?? " all"}
      rowClass={(row) => (row.route === null ? "" : "to-row")}
      columns={[
        {
          title: "Route",
          cell: ({ route }) =>
            route === null ? (
              "All requests"
            ) : (
              <Go view="route" more={{ name: route }}>
                <T text={route} most={120} />
              </Go>
            ),
        },
        { title: "Verdict", class: "", cell: (row) => <Verdict verdict={row.verdict} /> },
        {
          title: "Requests",
          cell: ({ requests }) => (
            <>
              {number(requests.after)}
              <span class="faint sub" title="Change of requests per second">
                {trafficChange(requests.ratio)}
              </span>
            </>
          ),
        },
        { title: "Error rate", cell: (row) => <Compared metric={row.error_rate} unit="ratio" /> },
        { title: "p95", cell: (row) => <Compared metric={row.p95} unit="seconds" /> },
      ]}
    />
  );
}

function Compared({ metric, unit }: { metric: VerdictMetric; unit: Unit }) {
  return (
    <>
      {value(metric.before, unit)} → {value(metric.after, unit)} <Verdict verdict={metric.verdict} />
      {metric.verdict === "same" && metric.reason && (
        <span class="reason faint">
          <T text={metric.reason} most={100} />
        </span>
      )}
    </>
  );
}
