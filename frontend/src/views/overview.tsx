// The overview: is it normal now, what changed, and which page, message or deploy is it?
import { useEffect } from "preact/hooks";
import { address } from "../api/client";
import type { OverviewAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import { lineOf } from "../chart/lines";
import { pollEvery } from "../lib/ranges";
import { figures, percent } from "../lib/units";
import { Card } from "../parts/card";
import { Empty, MIDDLEWARE } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { Toolbar } from "../parts/toolbar";
import { announce } from "../state/announce";
import { useFeed } from "../state/live";
import { health, state, store } from "../state/page";
import { CounterTable } from "./countertable";
import { Findings } from "./findings";
import { Changed, Frequent } from "./messagelists";
import { PageTable } from "./pagetable";
import { Picker } from "./picker";
import { Tiles } from "./tiles";

export function Overview() {
  const { range, series } = state.value;
  const fed = useFeed<OverviewAnswer>(address("overview", { precision: range, series }), pollEvery(range));
  const { data } = fed;
  useEffect(() => {
    if (!data) return;
    store.value = data.store;
    health.value = data.health;
  }, [data]);
  useEffect(() => {
    if (data) announce(spoken(data));
  }, [range, data === null]);
  return (
    <>
      <Toolbar title="Overview" ranged />
      <Gate fed={fed}>{(answer) => <Answer answer={answer} />}</Gate>
    </>
  );
}

/** The figures as a sentence. */
function spoken({ numbers }: OverviewAnswer): string {
  const { hits, errors } = numbers;
  const parts = [hits.value === null ? "no hits" : `${figures(hits.value)} hits a second`];
  if (errors.value !== null) parts.push(`${percent(errors.value)} failing`);
  return `Overview: ${parts.join(", ")}.`;
}

function Answer({ answer }: { answer: OverviewAnswer }) {
  const { window, numbers, chart, marks, pages, messages, counters, now } = answer;
  const lines = chart.map((each) => lineOf(each));
  // What was added up under a name of its own, e.g. "http_requests 5xx", leads to what it is of.
  const names = new Map(chart.map((each, i) => [lines[i]?.key, each.name.replace(/ 5xx$/, "")]));
  return (
    <>
      <Tiles numbers={numbers} />
      <ChartGroup
        title="Traffic"
        id="traffic"
        lines={lines}
        precision={window.precision}
        start={window.start}
        end={window.end}
        now={now}
        marks={marks}
        series={(line) => names.get(line.key) ?? null}
        actions={<Picker />}
        empty={
          <Empty title="No hits in this window" code={MIDDLEWARE}>
            Count the requests of your web application, or replay a log with{" "}
            <code>redmeter replay access.log</code>.
          </Empty>
        }
      />
      <div class="panels">
        <div class="column">
          <Card
            title="Pages"
            about={pages.of > 0 && `the busiest ${pages.rows.length} of ${pages.of}`}
            actions={
              <Go view="pages" class="to">
                All pages
              </Go>
            }
          >
            <PageTable rows={pages.rows} order="count" brief />
          </Card>
          <Card
            title="Counters"
            about={counters.total > 0 && `${counters.rows.length} of ${counters.total}`}
            actions={
              <Go view="counters" class="to">
                All counters
              </Go>
            }
          >
            <CounterTable rows={counters.rows} window={window} brief />
          </Card>
        </div>
        <div class="column">
          <Card
            title="Messages"
            about="this hour against the hour before"
            actions={
              <Go view="messages" class="to">
                All messages
              </Go>
            }
          >
            {messages.changes.length > 0 ? (
              <Changed changes={messages.changes} now={now} brief />
            ) : (
              <Frequent rows={messages.frequent} now={now} brief />
            )}
          </Card>
          <Card
            title="Health"
            actions={
              <Go view="health" class="to">
                All about the store
              </Go>
            }
          >
            <Findings level={answer.health.level} findings={answer.health.findings} />
            <p class="fine">
              {answer.health.writers === 1
                ? "1 process writes."
                : `${answer.health.writers} processes write.`}
            </p>
          </Card>
        </div>
      </div>
    </>
  );
}
