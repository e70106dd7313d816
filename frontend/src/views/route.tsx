// The page of one route: its requests by status class, its response times, and where its time goes.
import { address } from "../api/client";
import type { PagesAnswer, SeriesAnswer, SummaryAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import type { Line } from "../chart/lines";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, rate, seconds } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Figure } from "../parts/figure";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { Share } from "../parts/share";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { frame, state } from "../state/page";
import { CallerExceptions, CallerMessages, CallerStatements } from "./caller";
import { patternOfLabel } from "./pagetable";
import { latencyLines, statusLines, shares } from "./routelines";

/** A label of the API: the route of this page. */
const routeLabel = (name: string) => `route=${name}`;

export function RoutePage() {
  const { name, range } = state.value;
  const every = pollEvery(range);
  const listed = useFeed<PagesAnswer>(
    address("pages", { precision: range, ...frame(), filter: name, limit: 200 }),
    every,
  );
  // The other requests are about the very window of the list.
  const window = listed.data?.window;
  const times = { since: window?.start ?? null, until: frame().until };
  const histograms = { since: window?.histograms_start ?? null, until: frame().until };
  const label = routeLabel(name);
  const requests = useFeed<SeriesAnswer>(
    address("series", {
      name: "http_requests",
      label,
      by: "status",
      precision: window?.precision ?? range,
      ...times,
    }),
    every,
  );
  const width = window?.histograms ?? 60;
  const response = useFeed<SummaryAnswer>(
    address("summary", {
      name: "http_request_seconds",
      label,
      precision: width,
      q: ["0.5", "0.95", "0.99"],
      over_time: "1",
      ...histograms,
    }),
    every,
  );
  const database = useFeed<SummaryAnswer>(
    address("summary", { name: "http_request_db_seconds", label, precision: width, ...histograms }),
    every,
  );
  return (
    <>
      <Toolbar title={<T text={name || "(no route)"} most={160} />} ranged>
        <span class="tag">route</span>
      </Toolbar>
      <Gate fed={listed}>
        {({ rows, window, now: at }) => {
          const row = rows.find((each) => each.route === name);
          const lines: Line[] = [
            ...statusLines(requests.data?.series ?? []),
            ...latencyLines(response.data?.summaries[0] ?? null, response.data?.precision ?? width),
          ];
          if (!row)
            return (
              <Card title="Requests">
                <Empty title="No request of this route in this window">
                  Choose a wider range, or another route.
                </Empty>
              </Card>
            );
          const whole = response.data?.summaries[0];
          return (
            <>
              <ul class="tiles four" aria-label="Key figures">
                <Figure title="Requests" value={number(row.count)} note={rate(row.per_second)} />
                <Figure
                  title="Error rate"
                  value={percent(row.failing)}
                  note={`${number(row.failed)} failed`}
                />
                <Figure
                  title="p95 response time"
                  value={row.p95 === null ? "–" : seconds(row.p95)}
                  note={row.mean === null ? "" : `mean ${seconds(row.mean)}`}
                />
                <Figure
                  title="Share of all time"
                  value={row.total_share === null ? "–" : percent(row.total_share)}
                  note={`${percent(row.share)} of all requests`}
                />
              </ul>
              <ChartGroup
                title="Requests and response times"
                id="route"
                lines={lines}
                places={lines.map((line) => PLACES[line.key] ?? 0)}
                captions={{ "": "Requests by status", seconds: "Response time" }}
                stacked=""
                precision={requests.data?.precision ?? window.precision}
                start={requests.data?.start ?? window.start}
                end={requests.data?.end ?? window.end}
                now={at}
                marks={[]}
                empty={<Empty title="Nothing in this window" />}
                actions={
                  <Go
                    view="counters"
                    more={{ filter: patternOfLabel("route", name), kind: "all" }}
                    class="to"
                  >
                    Metrics of this route
                  </Go>
                }
              />
              {whole && (
                <Split
                  total={whole.mean}
                  database={database.data?.summaries[0]?.mean ?? null}
                  by={durationLabel(width)}
                />
              )}
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

/** Places in the palette: green, blue, yellow and red for classes of status. */
const PLACES: Record<string, number> = {
  "2xx": 2,
  "3xx": 6,
  "4xx": 4,
  "5xx": 5,
  p50: 0,
  p95: 1,
  p99: 3,
};

/** Where the time of a request goes. */
function Split({ total, database, by }: { total: number | null; database: number | null; by: string }) {
  const parts = shares(total, database);
  return (
    <Card title="Where the time goes" about={`mean of a request, by ${by}`}>
      {parts.length === 0 ? (
        <Empty title="Only the whole response time is measured">
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
