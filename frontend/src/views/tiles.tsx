// The five numbers, each compared with the window before and linked to its explanation.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { address } from "../api/client";
import type {
  JobsAnswer,
  MetricRow,
  MetricsAnswer,
  MessagesAnswer,
  Numbers,
  OverviewAnswer,
  RoutesAnswer,
  SeriesAnswer,
  Span,
  StatusAnswer,
} from "../api/types";
import { ERRORS } from "../lib/severity";
import { hourBefore } from "../lib/hours";
import { plain } from "../lib/text";
import { durationLabel, pollEvery } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { link, past, useFeed, useRecent } from "../state/live";
import { frame, state } from "../state/page";
import type { State, View } from "../state/url";
import { number, percent, rate, seconds, unitOf, value, type Unit } from "../lib/units";
import type { Counts, Meaning } from "../lib/change";
import { comparedText, timedText } from "../lib/frame";
import { Go } from "../parts/go";
import { Pill } from "../parts/pill";
import { T } from "../parts/text";

interface TileProps {
  title: string;
  /** Of the last five complete minutes, shown large; then `value` is that of the range, named by `range`. */
  recent?: number | null | undefined;
  range?: string;
  /** Whether it is out of its expected range now, and the usual value. */
  check?: Check | undefined;
  value: number | null;
  before: number | null;
  written: (value: number) => string;
  /** Whether it is an estimate. */
  sampled?: boolean;
  meaning: Meaning;
  counts?: Counts | null;
  against?: string | null;
  to: View;
  more?: Partial<State>;
  note?: ComponentChildren;
  /** Replaces the change. */
  usual?: string;
  /** A note in words. */
  detail?: string;
  /** Shown if there is no value. */
  none: string;
}

type Check = StatusAnswer["checks"][number];

function Tile({
  title,
  recent = null,
  range = "",
  check,
  value,
  before,
  written,
  sampled = false,
  meaning,
  counts = null,
  against = null,
  to,
  more = {},
  note,
  usual,
  detail = "",
  none,
}: TileProps) {
  const shown = recent ?? value;
  const text = shown === null ? "–" : written(shown);
  const [figure = "", ...unit] = text.split(" ");
  const off = check?.state === "high" || (check?.state === "low" && check.measure === "requests");
  // Only one judgment has a color: now that of the status, in the past that of the range.
  const judged = past.value ? meaning : "neutral";
  return (
    <li>
      <Go view={to} more={more} class="tile">
        <span class="tile-title">{title}</span>
        <span class="tile-value">
          {sampled && shown !== null && (
            <span class="about-sign" title="An estimate, from a sample">
              ~
            </span>
          )}
          {figure}
          {unit.length > 0 && <small> {unit.join(" ")}</small>}
        </span>
        <span class="tile-foot">
          {recent !== null && (
            <span class={off ? "pill bad" : "tile-note words"}>
              last 5 min
              {off && check?.mid !== null && check !== undefined && `, usually ${usually(check)}`}
            </span>
          )}
          {range && value !== null && (
            <span class="tile-note words">
              {recent !== null && written(value)} {range}
            </span>
          )}
          {value === null ? (
            <span class="faint">
              {link.value.missing.length > 0 ? "on the part that is unreachable" : none}
            </span>
          ) : usual !== undefined ? (
            <span class="faint">{usual}</span>
          ) : (
            <Pill
              value={value}
              before={before}
              meaning={judged}
              counts={counts}
              against={against ?? reference()}
              unknown={against === null && !compared.value ? "not kept" : ""}
              named
            />
          )}
          {detail && <span class="tile-note words">{detail}</span>}
          {note && <span class="tile-note">{note}</span>}
        </span>
      </Go>
    </li>
  );
}

/** The usual value of a check; requests are per five minutes. */
const usually = ({ measure, mid, unit }: Check) =>
  measure === "requests" ? rate((mid ?? 0) / 300) : value(mid, unit as Unit);

/** Whether the compared period is kept. */
const compared = signal(true);

/** The name of the compared period, of counters or of histograms. */
function reference(histograms = false): string {
  const { window } = link.value;
  return window ? comparedText(window, state.value.against, state.value.clock, histograms) : "";
}

/** A count that is an estimate for part of another hour. */
export function roughly(count: number): string {
  return number(Number(count.toFixed(count < 10 ? 1 : 0)));
}

interface MetricTilesProps {
  rows: readonly MetricRow[];
  logged: ComponentChildren;
  within: string;
  now: number;
}

/** Without a web application: the busiest counters, and the errors logged. */
function MetricTiles({ rows, logged, within, now }: MetricTilesProps) {
  const shown = rows.slice(0, 4);
  const name = shown.map((row) => row.name);
  const latest = useRecent<SeriesAnswer>("series", { name }, now);
  const recent = new Map<string, number>();
  for (const { name, values } of latest?.series ?? [])
    recent.set(
      name,
      values.reduce<number>((sum, each) => sum + (each ?? 0), 0),
    );
  return (
    <ul class="tiles" aria-label="Key figures">
      {shown.map((row) => (
        <Tile
          key={row.name}
          title={row.name}
          recent={latest && (recent.get(row.name) ?? 0)}
          range={within}
          value={row.count}
          before={row.before}
          written={(count) => value(count, unitOf(row.name))}
          meaning="neutral"
          to="series"
          more={{ name: row.name }}
          none=""
        />
      ))}
      {logged}
    </ul>
  );
}

interface TaskTilesProps {
  logged: ComponentChildren;
  within: string;
  now: number;
  checks: readonly Check[];
  /** The counter of all runs. */
  runs: MetricRow;
}

const isFailing = ({ measure, state, labels }: Check) =>
  measure === "failures" && state === "high" && labels["task"] !== undefined;

/** Without a web application, with background tasks: their runs, failures and durations. */
function TaskTiles({ logged, within, now, checks, runs }: TaskTilesProps) {
  const { range } = state.value;
  const order = { order: "p95", limit: 50 };
  const { data: all } = useFeed<JobsAnswer>(
    address("jobs", { precision: range, ...frame(), ...order }),
    pollEvery(range),
    false,
  );
  const five = useRecent<JobsAnswer>("jobs", order, now);
  const slowest = (of: JobsAnswer | null) => of?.rows.find((row) => row.p95 !== null);
  const slow = slowest(five) ?? slowest(all);
  // A task that fails now has the tile of failures to itself.
  const fails = past.value ? undefined : checks.find(isFailing);
  const failing = fails?.labels["task"];
  const share = (of: JobsAnswer | null) => {
    const { failed = 0, count = 0 } = (failing ? of?.rows.find(({ task }) => task === failing) : of) ?? {};
    return count > 0 ? failed / count : null;
  };
  return (
    <ul class="tiles" aria-label="Key figures">
      <Tile
        title="Runs of tasks"
        recent={five && five.count}
        range={within}
        value={runs.count}
        before={runs.before}
        written={number}
        meaning="neutral"
        to="jobs"
        none={`no runs ${within}`}
      />
      <Tile
        title="Failed runs"
        recent={share(five)}
        range={within}
        check={fails}
        value={share(all)}
        before={null}
        usual=""
        written={percent}
        meaning="neutral"
        to={failing ? "task" : "jobs"}
        more={failing ? { name: failing } : { order: "failing" }}
        none={`no runs ${within}`}
        note={failing && <T text={failing} most={80} />}
      />
      <Tile
        title="Slowest task, p95"
        recent={slowest(five)?.p95 ?? null}
        range={within}
        check={checks.find(
          ({ measure, labels }) => measure === "p95" && slow && labels["task"] === slow.task,
        )}
        value={slowest(all)?.p95 ?? null}
        before={null}
        usual=""
        written={seconds}
        meaning="neutral"
        to={slow ? "task" : "jobs"}
        more={slow ? { name: slow.task } : {}}
        none={`no durations ${within}`}
        note={slow && <T text={slow.task} most={80} />}
      />
      {logged}
    </ul>
  );
}

/** What a store without counters has: gauges, and messages by severity. */
export function useOther({ counters, routes }: OverviewAnswer) {
  const { range, since, until } = state.value;
  const every = Math.max(pollEvery(range), 10_000);
  const bare = counters.total === 0 && routes.of === 0 && link.value.missing.length === 0;
  const options = { precision: range, ...frame(), kind: "gauge", limit: 4 };
  const gauges = useFeed<MetricsAnswer>(bare ? address("metrics", options) : "", every, false);
  const logged = useFeed<MessagesAnswer>(
    bare ? address("messages", { limit: 500, since, until }) : "",
    every,
    false,
  );
  const messages = new Map<string, number>();
  for (const { severity, count } of (bare && logged.data?.frequent) || [])
    messages.set(severity, (messages.get(severity) ?? 0) + count);
  return { gauges: (bare && gauges.data?.rows) || [], messages };
}

type Other = ReturnType<typeof useOther>;

/** Without counters: gauges with their range within the window; without these, messages by severity. */
function OtherTiles({ other, logged, within }: { other: Other; logged: ComponentChildren; within: string }) {
  const rows = other.gauges;
  return (
    <ul class="tiles" aria-label="Key figures">
      {rows.map(({ name, value: newest, values }) => {
        const known = values.filter((each) => each !== null);
        const unit = unitOf(name);
        const [low, high] = [value(Math.min(...known), unit), value(Math.max(...known), unit)];
        return (
          <Tile
            key={name}
            title={name}
            value={newest}
            before={null}
            written={(each) => value(each, unit)}
            meaning="neutral"
            usual={low === high ? `steady ${within}` : `${low} to ${high} ${within}`}
            to="series"
            more={{ name }}
            none={`not set ${within}`}
          />
        );
      })}
      {rows.length === 0 &&
        [...other.messages].map(([severity, count]) => (
          <Tile
            key={severity}
            title={`Messages, ${severity}`}
            value={count}
            before={null}
            written={number}
            meaning="neutral"
            usual={state.value.since === null ? "in the last 60 min" : within}
            to="messages"
            more={{ severity }}
            none=""
          />
        ))}
      {logged}
    </ul>
  );
}

interface TilesProps {
  numbers: Numbers;
  window: Span;
  now: number;
  rows: readonly MetricRow[];
  other: Other;
  /** The last five complete minutes. */
  checks: StatusAnswer["checks"];
  /** The measures that changed within a range in the past. */
  changed: ReadonlySet<string>;
  /** Errors logged within a range in the past. */
  range: Logged | null;
}

export function Tiles({ numbers, window, now, rows, other, checks, changed, range }: TilesProps) {
  const { hits, errors, p95, slowest, logged } = numbers;
  compared.value = window.before;
  const zoomed = state.value.since !== null;
  const within = zoomed ? "in this window" : `in the last ${durationLabel(window.end - window.start)}`;
  const [timed] =
    useRecent<RoutesAnswer>(hits.recent === null ? "" : "routes", { order: "p95", limit: 1 }, now)?.rows ??
    [];
  if (hits.name === null && link.value.missing.length === 0) {
    const log = <LoggedTile logged={logged} range={range} />;
    const runs = rows.find(({ name }) => name === "task_runs");
    if (runs) return <TaskTiles {...{ within, now, checks, runs }} logged={log} />;
    if (rows.length > 0) return <MetricTiles {...{ rows, within, now }} logged={log} />;
    return <OtherTiles {...{ other, within }} logged={log} />;
  }
  const [, ...per] = rate(hits.recent ?? hits.value ?? 0).split(" ");
  const since = (at: number | null) => (at === null ? "" : `since ${momentOf(at, state.value.clock)}`);
  const checked = (measure: string) =>
    checks.find((each) => each.measure === measure && Object.keys(each.labels).length === 0);
  // Histograms and counters have different retentions.
  const apart = timedText(window, state.value.clock, now);
  const slow = timed ? timed.route : slowest.route;
  return (
    <ul class="tiles" aria-label="Key figures">
      <Tile
        title={`${hits.name && hits.name !== "hits" ? hits.name : "Requests"} ${per.join(" ")}`}
        recent={hits.recent}
        range={zoomed ? "" : within}
        check={checked("requests")}
        value={hits.value}
        before={hits.before}
        sampled={hits.sampled}
        written={(often) => rate(often).split(" ")[0] ?? ""}
        meaning="neutral"
        to={hits.name ? "series" : "metrics"}
        more={hits.name ? { name: hits.name } : {}}
        none={`no requests ${within}`}
      />
      <Tile
        title="Error rate"
        recent={errors.recent}
        range={zoomed ? "" : within}
        check={checked("error rate")}
        value={errors.value}
        before={errors.before}
        counts={errors.count_before === null ? null : [errors.count, errors.count_before]}
        written={percent}
        meaning={changed.has("error rate") ? "lower-is-better" : "neutral"}
        to="routes"
        more={{ order: "failing" }}
        none={`${hits.count > 0 ? "not counted" : "no requests"} ${within}`}
        detail={since(errors.since)}
      />
      <Tile
        title="p95 response time"
        recent={p95.recent}
        range={zoomed ? "" : apart || within}
        check={checked("p95")}
        against={reference(true)}
        value={p95.value}
        before={p95.before}
        sampled={p95.sampled}
        written={seconds}
        meaning={changed.has("hits_seconds") ? "lower-is-better" : "neutral"}
        to="routes"
        more={{ order: "p95" }}
        none={`no response times ${apart || within}`}
        detail={p95.value === null ? "" : [zoomed && apart, since(p95.since)].filter(Boolean).join(", ")}
      />
      <Tile
        title="Slowest route, p95"
        recent={timed?.p95 ?? null}
        range={zoomed && !timed ? "" : apart || within}
        check={checks.find(
          ({ measure, labels }) => measure === "p95" && timed && labels["route"] === timed.route,
        )}
        value={slowest.value}
        before={slowest.before}
        written={seconds}
        meaning="neutral"
        to={slow === null ? "routes" : "route"}
        more={slow === null ? { order: "p95" } : { name: slow }}
        none={`no routes ${apart || within}`}
        detail={
          slowest.value !== null && timed && timed.route !== slowest.route
            ? `of ${plain(slowest.route ?? "", 60)}`
            : ""
        }
        against={reference(true)}
        note={slow !== null && slowest.value !== null && <T text={slow} most={80} />}
      />
      <LoggedTile logged={logged} range={range} />
    </ul>
  );
}

/** Errors logged within a range; null: those of that time are not counted any more. */
interface Logged {
  value: number | null;
  before: number | null;
}

function LoggedTile({ logged, range }: { logged: Numbers["logged"]; range: Logged | null }) {
  if (range)
    return (
      <Tile
        title="Errors logged"
        {...range}
        counts={range.value === null || range.before === null ? null : [range.value, range.before]}
        written={number}
        meaning="neutral"
        to="messages"
        more={{ severity: ERRORS }}
        none="counted for two hours"
      />
    );
  return (
    <Tile
      title={logged.sliding ? "Errors logged, last 60 min" : "Errors logged this hour"}
      value={logged.value}
      before={logged.expected}
      counts={logged.value === null || logged.expected === null ? null : [logged.value, logged.expected]}
      written={number}
      meaning="neutral"
      against={hourBefore(logged.sliding)}
      to="messages"
      more={{ severity: ERRORS }}
      none="nothing logged in two hours"
      detail={logged.expected ? `${roughly(logged.expected)} in ${hourBefore(logged.sliding)}` : ""}
    />
  );
}
