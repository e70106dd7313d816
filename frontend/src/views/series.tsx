// The page of one series: everything known about it.
import { useEffect, useState } from "preact/hooks";
import { address } from "../api/client";
import type { DetailAnswer, Forecast } from "../api/types";
import { ChartGroup } from "../chart/group";
import { Histogram } from "../chart/histogram";
import { Matrix } from "../chart/matrix";
import { coverage, pollEvery } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { command, word } from "../lib/command";
import { quoted } from "../lib/text";
import { number, percent, unitOf, value } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go, ToSeries } from "../parts/go";
import { Share } from "../parts/share";
import { Name, T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { alerts } from "../state/alerts";
import { useFeed } from "../state/live";
import { frame, state, store } from "../state/page";
import { firingOf, span } from "./alertwords";
import { expectedRangeOf, detailLines, percentile } from "./detaillines";
import { Gauges } from "./gauges";
import { similar } from "./names";
import { patternOfLabel } from "./routetable";
import { Precisions } from "./precisions";

export function SeriesPage() {
  const { range, name } = state.value;
  const fed = useFeed<DetailAnswer>(
    address("detail", { name, precision: range, ...frame() }),
    pollEvery(range),
  );
  const kind = fed.data?.kind;
  return (
    <>
      <Toolbar title={<Name name={name} />} ranged>
        {kind && <span class="tag">{kind}</span>}
      </Toolbar>
      <Gate fed={fed}>
        {(answer) => (answer.kind ? <Detail answer={answer} /> : <Nowhere name={answer.name} />)}
      </Gate>
    </>
  );
}

/** Shown for a series without data. Polling goes on, so the first event appears automatically. */
function Nowhere({ name }: { name: string }) {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    const under = new AbortController();
    similar(name, under.signal).then(setNames, () => undefined);
    return () => under.abort();
  }, [name]);
  return (
    <Card title="Values">
      <Gauges names={[name]}>
        <Empty
          title="Nothing is stored under this name"
          code={`from redmeter import Meter; Meter().count(${quoted(name)})`}
        >
          No counter, gauge or histogram has this name: nothing was recorded yet, or only before the
          retention. It appears here with its first event.
        </Empty>
      </Gauges>
      {names.length > 0 && (
        <>
          <p class="level">Similar names</p>
          <ul class="breakdown">
            {names.map((each) => (
              <li key={each}>
                <ToSeries name={each}>
                  <Name name={each} />
                </ToSeries>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}

function Detail({ answer }: { answer: DetailAnswer }) {
  const { name, kind, window, summary, total, siblings, labels, hours, now, marks, forecast } = answer;
  const { added, siblings_of: of } = answer;
  const unit = unitOf(name);
  const lines = detailLines(answer);
  const precision = window.precision;
  const expected = kind === "histogram" ? {} : expectedRangeOf(forecast, precision);
  const fired = alerts.value ? firingOf(alerts.value, name) : [];
  const seen = fired.filter((each) => each.to > window.start && each.from < window.end);
  return (
    <>
      <ChartGroup
        title={kind === "histogram" ? "Percentiles" : "Values"}
        id="values"
        lines={lines}
        precision={precision}
        start={window.start}
        end={window.end}
        now={now}
        marks={marks}
        empty={
          <Empty title="Nothing in this window" code={command(`redmeter series ${word(name)}`, store.value)}>
            Choose a wider range below, or wait for the next event.
          </Empty>
        }
        {...expected}
        firing={seen.map(({ from, to }) => [from, to])}
        foot={seen.length > 0 && <Fired periods={seen} />}
        actions={
          <Go view="overview" more={{ series: [name] }} class="to">
            On the overview
          </Go>
        }
        note={added > 0 && added < of ? `${number(added)} of ${number(of)} label sets.` : ""}
      />
      <dl class="stats">
        {total !== null && (
          <div>
            <dt>All-time total</dt>
            <dd>{value(total, unit)}</dd>
          </div>
        )}
        {summary && <Figures summary={summary} answer={answer} />}
        {forecast && (
          <div class="long">
            <dt>Expected</dt>
            <dd>
              {forecast.reason ? (
                <span class="faint">
                  <T text={forecast.reason} most={300} />
                </span>
              ) : (
                <>
                  Expected range ({percent(forecast.level)}), by <T text={forecast.method} most={200} />;{" "}
                  {fellOutside(forecast)}.
                </>
              )}
            </dd>
          </div>
        )}
      </dl>
      {summary && summary.buckets.length > 0 && (
        <Card
          title="Spread"
          about={`${number(summary.count)} values within ${coverage(window.histograms_start, window.histograms, now)}`}
        >
          <Histogram summary={summary} unit={unit} />
        </Card>
      )}
      <Precisions answer={answer} />
      {labels.length > 0 && (
        <div class="panels even">
          {labels.map(({ label, values }) => (
            <Card title={`By ${label}`} key={label}>
              <ul class="breakdown">
                {values.map((each) => (
                  <li key={each.value ?? ""}>
                    <span class="grow">
                      {each.value === null ? (
                        <span class="faint">(without)</span>
                      ) : (
                        <Go
                          view="metrics"
                          more={{ filter: patternOfLabel(label, each.value, `${name}{`), kind: "all" }}
                        >
                          <T text={each.value} most={120} />
                        </Go>
                      )}
                    </span>
                    <span class="figure">{number(each.count)}</span>
                    <Share share={each.share} />
                  </li>
                ))}
              </ul>
            </Card>
          ))}
        </div>
      )}
      {siblings.length > 0 && (
        <Card title="Label sets" about={`${number(siblings.length)} of ${number(of)}, the busiest first`}>
          <ul class="breakdown">
            {siblings.map((each) => (
              <li key={each.name}>
                <span class="grow">
                  <ToSeries name={each.name}>
                    <Name name={each.name} />
                  </ToSeries>
                </span>
                <span class="figure">{number(each.count)}</span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {hours && hours.values.length > 0 && (
        <Card
          title="Days and hours"
          about={`${kind === "histogram" ? "the p95 of each hour; " : ""}days and hours ${state.value.clock === "utc" ? "of UTC" : "of local time"}`}
        >
          <Matrix series={hours} unit={unit} />
        </Card>
      )}
    </>
  );
}

/** The shaded periods of the chart, in words. */
function Fired({ periods }: { periods: ReturnType<typeof firingOf> }) {
  const { clock } = state.value;
  return (
    <p class="fine">
      Fired:{" "}
      {periods.slice(0, 5).map(({ name, from, to }, i) => (
        <span key={`${name} ${from}`}>
          {i > 0 && ", "}
          <Go view="alerts" class="noun">
            <T text={name} most={120} />
          </Go>{" "}
          {momentOf(from, clock)}, for {span(to - from)}
        </span>
      ))}
      {periods.length > 5 && `, and ${number(periods.length - 5)} more`}
    </p>
  );
}

/** "13 of 93 (14 %) fell outside". */
function fellOutside({ past }: Forecast): string {
  const outside = past.filter((each) => each.outside).length;
  const share = outside > 0 ? ` (${percent(outside / past.length)})` : "";
  return `${number(outside)} of ${number(past.length)}${share} fell outside`;
}

function Figures({
  summary,
  answer,
}: {
  summary: NonNullable<DetailAnswer["summary"]>;
  answer: DetailAnswer;
}) {
  const unit = unitOf(answer.name);
  const rows: [string, string][] = [
    ["Values", number(summary.count)],
    ["Mean", value(summary.mean, unit)],
    ...Object.keys(summary.quantiles)
      .sort((a, b) => Number(a) - Number(b))
      .map((key) => [percentile(key), value(summary.quantiles[key], unit)] as [string, string]),
    ["Lowest", value(summary.low, unit)],
    ["Highest", value(summary.high, unit)],
    ["Std. dev.", value(summary.stddev, unit)],
  ];
  return (
    <>
      {rows.map(([title, text]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </>
  );
}
