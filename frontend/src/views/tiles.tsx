// The five numbers, each compared with the window before and linked to its explanation.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { address } from "../api/client";
import type {
  MetricRow,
  MetricsAnswer,
  MessagesAnswer,
  Numbers,
  OverviewAnswer,
  Span,
  StatusAnswer,
} from "../api/types";
import { ERRORS } from "../lib/severity";
import { hourBefore } from "../lib/hours";
import { coverage, durationLabel, pollEvery } from "../lib/ranges";
import { minuteOf, momentOf } from "../lib/time";
import { link, useFeed } from "../state/live";
import { frame, state } from "../state/page";
import type { State, View } from "../state/url";
import { number, percent, rate, seconds, unitOf, value, type Unit } from "../lib/units";
import type { Counts, Meaning } from "../lib/change";
import { comparedText } from "../lib/frame";
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
  const off = check?.state === "high" || check?.state === "low";
  // Only one judgment has a color: now that of the status, in the past the comparison.
  const judged = recent === null ? meaning : "neutral";
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
            <span class={off ? "pill bad" : "faint"}>
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

/** Number of requests above which a change of the p95 is more than chance. */
const TELLING = 400;

/** A count that is an estimate for part of another hour. */
export function roughly(count: number): string {
  return number(Number(count.toFixed(count < 10 ? 1 : 0)));
}

/** Without a web application: the busiest counters, and the errors logged. */
function MetricTiles({ rows, logged }: { rows: readonly MetricRow[]; logged: ComponentChildren }) {
  return (
    <ul class="tiles" aria-label="Key figures">
      {rows.slice(0, 4).map((row) => (
        <Tile
          key={row.name}
          title={row.name}
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

/** What a store without counters has: gauges, and messages by severity. */
export function useOther({ counters, routes }: OverviewAnswer) {
  const { range } = state.value;
  const every = Math.max(pollEvery(range), 10_000);
  const bare = counters.total === 0 && routes.of === 0 && link.value.missing.length === 0;
  const options = { precision: range, ...frame(), kind: "gauge", limit: 4 };
  const gauges = useFeed<MetricsAnswer>(bare ? address("metrics", options) : "", every, false);
  const logged = useFeed<MessagesAnswer>(bare ? address("messages", { limit: 500 }) : "", every, false);
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
            usual="in the last 60 min"
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
  /** Errors logged within a range in the past. */
  range: Logged | null;
}

export function Tiles({ numbers, window, now, rows, other, checks, range }: TilesProps) {
  const { hits, errors, p95, slowest, logged } = numbers;
  compared.value = window.before;
  if (hits.name === null && rows.length > 0 && link.value.missing.length === 0)
    return <MetricTiles rows={rows} logged={<LoggedTile logged={logged} range={range} />} />;
  const zoomed = state.value.since !== null;
  const within = zoomed ? "in this window" : `in the last ${durationLabel(window.end - window.start)}`;
  if (hits.name === null && link.value.missing.length === 0)
    return <OtherTiles {...{ other, within }} logged={<LoggedTile logged={logged} range={range} />} />;
  const [, ...per] = rate(hits.recent ?? hits.value ?? 0).split(" ");
  const since = (at: number | null) => (at === null ? "" : `since ${momentOf(at, state.value.clock)}`);
  const span = coverage(window.histograms_start, window.histograms, now);
  const observed = zoomed ? "in this window" : `in the last ${span}`;
  const checked = (measure: string) =>
    checks.find((each) => each.measure === measure && Object.keys(each.labels).length === 0);
  // Histograms and counters have different retentions.
  const wider = window.histograms_start !== window.start || window.histograms_end !== window.end;
  const { clock } = state.value;
  const apart = !wider
    ? ""
    : zoomed
      ? `${minuteOf(window.histograms_start, clock)} to ${minuteOf(window.histograms_end, clock)}, by ${durationLabel(window.histograms)}`
      : `${observed}, by ${durationLabel(window.histograms)}`;
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
        meaning="lower-is-better"
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
        meaning={hits.count >= TELLING ? "lower-is-better" : "neutral"}
        to="routes"
        more={{ order: "p95" }}
        none={`no response times ${observed}`}
        detail={p95.value === null ? "" : [zoomed && apart, since(p95.since)].filter(Boolean).join(", ")}
      />
      <Tile
        title="Slowest route, p95"
        value={slowest.value}
        before={slowest.before}
        written={seconds}
        meaning="neutral"
        to={slowest.route === null ? "routes" : "route"}
        more={slowest.route === null ? { order: "p95" } : { name: slowest.route }}
        none={`no routes ${observed}`}
        detail={slowest.value === null ? "" : apart || within}
        against={reference(true)}
        note={slowest.route !== null && slowest.value !== null && <T text={slowest.route} most={80} />}
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
        meaning="lower-is-better"
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
      meaning="lower-is-better"
      against={hourBefore(logged.sliding)}
      to="messages"
      more={{ severity: ERRORS }}
      none="nothing logged in two hours"
      detail={logged.expected ? `${roughly(logged.expected)} in ${hourBefore(logged.sliding)}` : ""}
    />
  );
}
