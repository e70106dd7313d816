// The overview: is it normal now, what changed, and which page, message or deploy is it?
import { useEffect, useState } from "preact/hooks";
import { address } from "../api/client";
import type { MessagesAnswer, OverviewAnswer, StatusAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import { FAINT } from "../chart/palette";
import { comparison } from "../lib/hours";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, rate } from "../lib/units";
import { ERRORS, severitiesOf } from "../lib/severity";
import { plain } from "../lib/text";
import { ago } from "../lib/time";
import { Card } from "../parts/card";
import { Empty, MIDDLEWARE } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { announce } from "../state/announce";
import { past, useFeed } from "../state/live";
import { frame, health, set, state, store, type StoreJudgment } from "../state/page";
import { MetricTable } from "./metrictable";
import { expectedRangeOf } from "./detaillines";
import { ExplainPanel, RangeAnswer, useRangeAnswers } from "./explainpanel";
import { Findings } from "./findings";
import { Gauges } from "./gauges";
import { Changed, Frequent, Recent } from "./messagelists";
import { RouteTable } from "./routetable";
import { Marks, openMark, picked } from "./picked";
import { refusedOf } from "./names";
import { Picker } from "./picker";
import { madeFrom } from "./ranking";
import { referenceLine } from "./reference";
import { standoutsNow, standoutsOf, type Standout } from "./standouts";
import { StatusLine } from "./statusline";
import { Tiles, useOther } from "./tiles";
import { VerdictCard } from "./verdictcard";
import { knownSince, trafficLines } from "./trafficlines";

export function Overview() {
  const { range } = state.value;
  const [refused, refuse] = useState<readonly string[]>([]);
  const series = state.value.series.filter((each) => !refused.includes(each));
  const fed = useFeed<OverviewAnswer>(
    address("overview", { precision: range, ...frame(), series }),
    pollEvery(range),
  );
  const status = useFeed<StatusAnswer>(address("status"), STATUS_EVERY, false);
  const { data, failure } = fed;
  const answers = useRangeAnswers();
  const log = useRangeLog();
  const standouts = past.value
    ? standoutsOf(answers.map(({ answer }) => answer))
    : standoutsNow(status.data?.checks ?? []);
  useEffect(() => {
    // An invalid name is reported next to the chart; the rest of the page stays.
    if (failure && !failure.passing && series.length > 0)
      refuse([...refused, ...refusedOf(series, failure.message)]);
  }, [failure]);
  useEffect(() => {
    if (!data) return;
    store.value = data.store;
  }, [data]);
  useEffect(() => {
    if (data) announce(spoken(data));
  }, [range, data === null]);
  return (
    <>
      <Toolbar title="Overview" ranged />
      <StatusLine {...status} />
      <RangeAnswer answers={answers} />
      <Gate fed={fed}>
        {(answer) => <Answer {...{ answer, refused, standouts, log }} checks={status.data?.checks ?? []} />}
      </Gate>
    </>
  );
}

/** The log of a range in the past: its messages, and its errors; null without such a range. */
function useRangeLog() {
  const { since, until } = state.value;
  const path = (more: object) => (past.value ? address("messages", { since, until, ...more }) : "");
  const all = useFeed<MessagesAnswer>(path({ limit: 6 }), STATUS_EVERY, false);
  const errors = useFeed<MessagesAnswer>(
    path({ severity: severitiesOf(ERRORS), limit: 500 }),
    STATUS_EVERY,
    false,
  );
  const { since: from, until: to, counted_since: counted, frequent } = errors.data ?? { frequent: [] };
  if (!past.value || all.stale || errors.stale || !all.data || !from || !to || !counted) return null;
  const sum = (side: "count" | "before") => frequent.reduce((total, each) => total + (each[side] ?? 0), 0);
  return {
    messages: all.data,
    errors: {
      value: counted <= from ? sum("count") : null,
      before: counted <= from - (to - from) ? sum("before") : null,
    },
  };
}

/** Milliseconds between two requests for the status, which changes each minute. */
const STATUS_EVERY = 15_000;

/** Number of busiest routes in the panel; see reading/page/overview.py. */
const ROUTES = 6;

/** The figures as a sentence. */
function spoken({ numbers }: OverviewAnswer): string {
  const { hits, errors } = numbers;
  const parts = [hits.value === null ? "no requests" : rate(hits.value).replace(" ", " requests ")];
  if (errors.value !== null) parts.push(`${percent(errors.value)} error rate`);
  return `Overview: ${parts.join(", ")}.`;
}

/** Lines that cover only some of their label sets, as text. */
function partly(chart: OverviewAnswer["chart"]): string {
  const truncated = chart.filter((each) => each.examined < each.of);
  return truncated
    .map((each) => `${plain(each.name, 80)}: ${number(each.examined)} of ${number(each.of)} label sets`)
    .join("; ");
}

/** Why the chart is empty, and how to fill it. */
function Nothing({ answer }: { answer: OverviewAnswer }) {
  const { series } = state.value;
  if (series.length > 0)
    return (
      <Gauges names={series} chart>
        <Empty title={series.length === 1 ? "No data for this series" : "No data for these series"}>
          Nothing was recorded {within(answer)}.{" "}
          <button type="button" class="quiet" onClick={() => set({ series: [] }, true)}>
            Show the default series
          </button>
        </Empty>
      </Gauges>
    );
  if (answer.counters.total > 0 || answer.routes.of > 0)
    return <Empty title={`Nothing ${within(answer)}`}>Choose a wider range above.</Empty>;
  return (
    <Gauges names={[]} chart>
      <Empty title="Nothing is counted yet" code={MIDDLEWARE}>
        Count the requests of your web application, or replay a log with{" "}
        <code>redmeter replay access.log</code>.
      </Empty>
    </Gauges>
  );
}

function within({ window }: OverviewAnswer): string {
  return `in the last ${durationLabel(window.end - window.start)}`;
}

/** The title of the chart: without requests, the server chose the busiest counters. */
function titleOf(chart: OverviewAnswer["chart"]): string {
  const usual = chart.every((each) => !/^(hits|http_)/.test(each.name));
  return chart.length > 0 && usual && state.value.series.length === 0 ? "Busiest counters" : "Traffic";
}

/** "the busiest 6 and the slowest": the last of more than six rows is the slowest route. */
function busiest({ rows }: OverviewAnswer["routes"]): string {
  return rows.length > ROUTES ? `the busiest ${ROUTES} and the slowest` : `the busiest ${rows.length}`;
}

/** Before the answer is there. */
const NOT_YET = { value: null, before: null };

/** The patterns that were first seen in a range in the past, else its most frequent ones. */
function RangeMessages({ log, now }: { log: MessagesAnswer; now: number }) {
  const { changes, frequent, recent } = log;
  if (changes.length > 0) return <Changed changes={changes.slice(0, 6)} now={now} windowed brief />;
  if (frequent.length > 0) return <Frequent rows={frequent} now={now} against="" brief />;
  return <Recent rows={recent} windowed />;
}

/** What fails or is slow, with the reason, before all other rows. */
function Standouts({ rows }: { rows: readonly Standout[] }) {
  if (rows.length === 0) return null;
  return (
    <ul class="breakdown" aria-label="What stands out">
      {rows.slice(0, MOST_STANDOUTS).map(({ kind, name, reason }) => (
        <li key={`${kind} ${name}`} class="named-cause">
          <span class="grow">
            <Go view={kind} more={{ name }}>
              <T text={name} most={120} />
            </Go>
          </span>
          <span class="bad-text">{reason}</span>
        </li>
      ))}
      {rows.length > MOST_STANDOUTS && <li class="faint">{number(rows.length - MOST_STANDOUTS)} more</li>}
    </ul>
  );
}

const MOST_STANDOUTS = 10;

/** The judgment of the view Health, with its first findings. */
function StoreHealth({ level, findings, writers }: StoreJudgment) {
  return (
    <>
      <Findings level={level} findings={findings.slice(0, MOST_FINDINGS)} />
      <p class="fine">
        {writers === 0
          ? "No process has written in the last 3 minutes."
          : writers === 1
            ? "1 process writing."
            : `${number(writers)} processes writing.`}
      </p>
    </>
  );
}

const MOST_FINDINGS = 3;

/** The titles of the axes. */
function captionsOf(chart: OverviewAnswer["chart"]) {
  const web = chart.some((each) => each.name === "hits");
  return web && state.value.series.length === 0
    ? { "": "Requests", ratio: "Error rate", seconds: "p95 response time" }
    : {};
}

interface AnswerProps {
  answer: OverviewAnswer;
  refused: readonly string[];
  checks: StatusAnswer["checks"];
  standouts: readonly Standout[];
  log: ReturnType<typeof useRangeLog>;
}

function Answer({ answer, refused, checks, standouts, log }: AnswerProps) {
  const { window, numbers, chart, marks, routes, messages, counters, now } = answer;
  const { clock, series } = state.value;
  const traffic = trafficLines(chart, series.length > 0);
  const known = series.length > 0 ? "" : knownSince(numbers, clock);
  const expected = expectedRangeOf(answer.expected, window.precision, window.end);
  const other = useOther(answer);
  const bare = other.gauges.length > 0 || other.messages.size > 0;
  const faint = referenceLine(traffic.lines[0], answer.window, state.value);
  const judged = (
    <Card
      title="Health"
      class="later"
      actions={
        <Go view="health" class="to">
          All health checks
        </Go>
      }
    >
      {health.value && <StoreHealth {...health.value} />}
    </Card>
  );
  return (
    <>
      <Tiles
        numbers={numbers}
        window={window}
        now={now}
        rows={counters.rows}
        {...{ other, checks }}
        range={past.value ? (log?.errors ?? NOT_YET) : null}
      />
      <VerdictCard marks={marks} />
      <ExplainPanel />
      {(other.messages.size === 0 || other.gauges.length > 0 || series.length > 0) && (
        <ChartGroup
          title={bare && series.length === 0 ? "Gauges" : titleOf(chart)}
          id="traffic"
          lines={faint.line ? [...traffic.lines, faint.line] : traffic.lines}
          places={faint.line ? [...traffic.places, FAINT] : traffic.places}
          captions={captionsOf(chart)}
          precision={window.precision}
          start={window.start}
          end={window.end}
          now={now}
          marks={marks}
          series={(line) => traffic.series.get(line.key) ?? null}
          {...expected}
          pick={(moment) => picked(moment, window.precision, marks, expected.outside ?? [])}
          pickMark={openMark}
          actions={<Picker refused={refused} />}
          foot={
            <Marks marks={marks.filter(({ time }) => time >= window.start && time < window.end)} now={now} />
          }
          note={[known, partly(chart), faint.note].filter(Boolean).join(" ")}
          empty={<Nothing answer={answer} />}
        />
      )}
      <div class={bare ? "panels even" : "panels"}>
        {!bare && (
          <div class="column">
            <Card
              title="Routes"
              about={
                routes.found > 0 &&
                `${busiest(routes)} of ${number(routes.found)}${routes.examined < routes.of ? `, of ${number(routes.examined)} of ${number(routes.of)} label sets` : ""}${routes.ranked_at === null ? "" : `, read ${ago(routes.ranked_at, now)}`}`
              }
              actions={
                <Go view="routes" class="to">
                  All routes
                </Go>
              }
            >
              <Standouts rows={standouts} />
              <RouteTable rows={routes.rows} order="count" brief />
            </Card>
            {judged}
          </div>
        )}
        <div class="column">
          <Card
            title="Messages"
            about={past.value ? "in this range" : comparison(messages)}
            actions={
              <Go view="messages" class="to">
                All messages
              </Go>
            }
          >
            {past.value ? (
              log && <RangeMessages log={log.messages} now={now} />
            ) : messages.changes.length > 0 ? (
              <Changed changes={messages.changes} now={now} brief />
            ) : (
              <Frequent rows={messages.frequent} now={now} brief />
            )}
          </Card>
          {bare ? (
            judged
          ) : (
            <Card
              title="Counters"
              about={
                counters.found > 0 &&
                `the busiest ${counters.rows.length} of ${number(counters.found)}${madeFrom(counters, now, true)}`
              }
              actions={
                <Go view="metrics" class="to">
                  All metrics
                </Go>
              }
            >
              <MetricTable rows={counters.rows} window={window} brief />
            </Card>
          )}
        </div>
      </div>
    </>
  );
}
