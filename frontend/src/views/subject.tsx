// The page of one route or task: its figures, its counts and durations over time, and its activity.
import type { ComponentChildren } from "preact";
import { address } from "../api/client";
import type { GroupedSeries, GroupedSummary, SeriesAnswer, Span, SummaryAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import type { Line } from "../chart/lines";
import { pollEvery } from "../lib/ranges";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Figure } from "../parts/figure";
import { Gate } from "../parts/gate";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed, useRecent } from "../state/live";
import { frame, state } from "../state/page";
import { CallerExceptions, CallerMessages, CallerStatements } from "./caller";
import { latencyLines } from "./routelines";
import { useReason } from "./usestandouts";

/** Places in the palette: green for success, red for failure. */
const PLACES: Record<string, number> = {
  success: 2,
  failure: 5,
  retry: 4,
  "2xx": 2,
  "4xx": 4,
  "5xx": 5,
  p50: 0,
  p95: 1,
  p99: 3,
};

interface FigureRow {
  title: string;
  value: string;
  note: string;
}

/** The figure of now, with that of the range as its note. */
function now(recent: string, { title, value, note }: FigureRow): FigureRow {
  return { title, value: recent, note: `last 5 min; ${value} in this range${note && `: ${note}`}` };
}

interface Props<A, R> {
  tag: "route" | "task";
  /** The list of the API that has a row of it. */
  list: string;
  /** Maximum number of rows of that list: other names may contain this one. */
  limit: number;
  rowOf: (answer: A, name: string) => R | undefined;
  /** The counter and the label that divides it; the histogram of durations. */
  counts: string;
  by: string;
  durations: string;
  linesOf: (series: readonly GroupedSeries[]) => Line[];
  figures: (row: R) => FigureRow[];
  title: string;
  captions: { "": string; seconds: string };
  actions: ComponentChildren;
  /** Noun for an event that it counts: "request". */
  event: string;
  /** Content after the chart. */
  more?: (durations: GroupedSummary, window: Span) => ComponentChildren;
}

export function Subject<A extends { now: number; missing: string[]; window: Span }, R>(about: Props<A, R>) {
  const { name, range } = state.value;
  const zoomed = state.value.since !== null;
  const { tag } = about;
  const every = pollEvery(range);
  const listed = useFeed<A>(
    address(about.list, { precision: range, ...frame(), filter: name, limit: about.limit }),
    every,
  );
  // The other requests are about the very window of the list.
  const window = listed.data?.window;
  const label = `${tag}=${name}`;
  const counts = useFeed<SeriesAnswer>(
    address("series", {
      name: about.counts,
      label,
      by: about.by,
      precision: window?.precision ?? range,
      since: window?.start ?? null,
      until: zoomed && window ? window.end : null,
    }),
    every,
    false,
  );
  const width = window?.histograms ?? 60;
  const durations = useFeed<SummaryAnswer>(
    address("summary", {
      name: about.durations,
      label,
      precision: width,
      q: ["0.5", "0.95", "0.99"],
      over_time: "1",
      since: window?.histograms_start ?? null,
      until: zoomed && window ? window.histograms_end : null,
    }),
    every,
    false,
  );
  const summary = durations.data?.summaries[0] ?? null;
  // Where the range ends now, the figures are of the last five complete minutes first.
  const latest = useRecent<A>(about.list, { filter: name, limit: about.limit }, listed.data?.now ?? 0);
  const recent = latest && about.rowOf(latest, name);
  const reason = useReason(tag, name);
  return (
    <>
      <Toolbar title={<T text={name || `(no ${tag})`} most={160} />} ranged>
        <span class="tag">{tag}</span>
      </Toolbar>
      <Gate fed={listed}>
        {(answer) => {
          const row = about.rowOf(answer, name);
          if (row === undefined)
            return (
              <Card title={about.captions[""]}>
                <Empty title={`No ${about.event} of this ${tag} in this window`}>
                  Choose a wider range, or another {tag}.
                </Empty>
              </Card>
            );
          const lines = [
            ...about.linesOf(counts.data?.series ?? []),
            ...latencyLines(summary, durations.data?.window.precision ?? width),
          ];
          return (
            <>
              {reason && <p class="bad-text">{reason}</p>}
              <ul class="tiles" aria-label="Key figures">
                {about.figures(row).map((each, i) => {
                  const of = recent ? about.figures(recent)[i]?.value : i === 0 ? "0" : "–";
                  return <Figure key={each.title} {...(latest ? now(of ?? "–", each) : each)} />;
                })}
              </ul>
              <ChartGroup
                title={about.title}
                id={tag}
                lines={lines}
                places={lines.map((line) => PLACES[line.key] ?? 6)}
                captions={about.captions}
                stacked=""
                precision={counts.data?.window.precision ?? answer.window.precision}
                start={counts.data?.window.since ?? answer.window.start}
                end={counts.data?.window.until ?? answer.window.end}
                now={answer.now}
                marks={[]}
                empty={<Empty title="Nothing in this window" />}
                actions={about.actions}
              />
              {summary && about.more?.(summary, answer.window)}
            </>
          );
        }}
      </Gate>
      <CallerStatements name={name} />
      <CallerExceptions name={name} />
      <CallerMessages name={name} />
    </>
  );
}
