// The page of one route: requests by status class, response times, and their breakdown.
import { address } from "../api/client";
import type { GroupedSummary, RoutesAnswer, Span, SummaryAnswer } from "../api/types";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, rate, seconds, value } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { useFeed } from "../state/live";
import { frame, state } from "../state/page";
import { patternOfLabel } from "./routetable";
import { shares, statusLines } from "./routelines";
import { Subject } from "./subject";

export function RoutePage() {
  const { name } = state.value;
  return (
    <Subject
      tag="route"
      list="routes"
      limit={200}
      rowOf={({ rows }: RoutesAnswer) => rows.find((each) => each.route === name)}
      counts="http_requests"
      by="status"
      durations="http_request_seconds"
      linesOf={statusLines}
      figures={(row) => [
        { title: "Requests", value: number(row.count), note: rate(row.per_second) },
        {
          title: "Error rate",
          value: row.count === 0 ? "–" : row.failing === null ? "unknown" : percent(row.failing),
          note: row.failed === null ? "unknown" : `${number(row.failed)} failed`,
        },
        {
          title: "p95 response time",
          value: value(row.p95, "seconds"),
          note: row.mean === null ? "" : `mean ${seconds(row.mean)}`,
        },
        {
          title: "Share of all time",
          value: value(row.total_share, "ratio"),
          note: `${percent(row.share)} of all requests`,
        },
      ]}
      title="Requests and response times"
      captions={{ "": "Requests by status", seconds: "Response time" }}
      actions={
        <Go view="metrics" more={{ filter: patternOfLabel("route", name), kind: "all" }} class="to">
          Metrics of this route
        </Go>
      }
      event="request"
      more={(whole, window) => (
        <>
          <Split whole={whole} window={window} />
          <Lifetimes window={window} />
        </>
      )}
    />
  );
}

/** The duration of one histogram of the route within the range. */
function useSummary(series: string, window: Span): GroupedSummary | undefined {
  const { name, range } = state.value;
  const { data } = useFeed<SummaryAnswer>(
    address("summary", {
      name: series,
      label: `route=${name}`,
      precision: window.histograms,
      since: window.histograms_start,
      until: frame().until,
    }),
    pollEvery(range),
    false,
  );
  return data?.summaries[0];
}

/** How long connections lasted, which are not among the response times. */
function Lifetimes({ window }: { window: Span }) {
  const rows = [
    { title: "websockets", found: useSummary("websocket_seconds", window) },
    { title: "event streams", found: useSummary("event_stream_seconds", window) },
  ].filter(({ found }) => found !== undefined && found.count > 0);
  if (rows.length === 0) return null;
  return (
    <Card title="Connections" about="closed in this range, with their mean and longest lifetime">
      <ul class="breakdown">
        {rows.map(({ title, found }) => (
          <li key={title}>
            <span class="grow">
              {number(found!.count)} {title}
            </span>
            <span class="figure">{found!.mean === null ? "" : seconds(found!.mean)}</span>
            <span class="figure">{found!.high === null ? "" : `up to ${seconds(found!.high)}`}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** The breakdown of response times. */
function Split({ whole, window }: { whole: GroupedSummary; window: Span }) {
  const database = useSummary("http_request_db_seconds", window);
  const parts = shares(whole.mean, database?.mean ?? null);
  return (
    <Card title="Where the time goes" about={`mean of a request, by ${durationLabel(window.histograms)}`}>
      {parts.length === 0 ? (
        <Empty title="Only total response times are recorded">
          Time in the database appears here once <Go view="database">statements are recorded</Go>.
        </Empty>
      ) : (
        <ul class="breakdown">
          {parts.map(({ name, mean, share }) => (
            <li key={name}>
              <span class="grow">{name}</span>
              <span class="figure">{seconds(mean)}</span>
              <Share share={share} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
