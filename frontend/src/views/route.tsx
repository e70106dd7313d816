// The page of one route: requests by status class, response times, and their breakdown.
import { address } from "../api/client";
import type { GroupedSummary, PagesAnswer, Span, SummaryAnswer } from "../api/types";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, rate, seconds, value } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { useFeed } from "../state/live";
import { frame, state } from "../state/page";
import { patternOfLabel } from "./pagetable";
import { shares, statusLines } from "./routelines";
import { Subject } from "./subject";

export function RoutePage() {
  const { name } = state.value;
  return (
    <Subject
      tag="route"
      list="pages"
      limit={200}
      rowOf={({ rows }: PagesAnswer) => rows.find((each) => each.route === name)}
      counts="http_requests"
      by="status"
      durations="http_request_seconds"
      linesOf={statusLines}
      figures={(row) => [
        { title: "Requests", value: number(row.count), note: rate(row.per_second) },
        { title: "Error rate", value: percent(row.failing), note: `${number(row.failed)} failed` },
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
        <Go view="counters" more={{ filter: patternOfLabel("route", name), kind: "all" }} class="to">
          Metrics of this route
        </Go>
      }
      event="request"
      more={(whole, window) => <Split whole={whole} window={window} />}
    />
  );
}

/** The breakdown of response times. */
function Split({ whole, window }: { whole: GroupedSummary; window: Span }) {
  const { name, range } = state.value;
  const { data } = useFeed<SummaryAnswer>(
    address("summary", {
      name: "http_request_db_seconds",
      label: `route=${name}`,
      precision: window.histograms,
      since: window.histograms_start,
      until: frame().until,
    }),
    pollEvery(range),
    false,
  );
  const parts = shares(whole.mean, data?.summaries[0]?.mean ?? null);
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
