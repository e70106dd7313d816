// The page of one series: all that is known of it.
import { address } from "../api/client";
import type { DetailAnswer } from "../api/types";
import { ChartGroup } from "../chart/group";
import { Histogram } from "../chart/histogram";
import { Matrix } from "../chart/matrix";
import { durationLabel, pollEvery } from "../lib/ranges";
import { number, percent, unitOf, value } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go, ToSeries } from "../parts/go";
import { Share } from "../parts/share";
import { Name, T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state } from "../state/page";
import { detailLines, percentile } from "./detaillines";
import { Precisions } from "./precisions";

export function SeriesPage() {
  const { range, name } = state.value;
  const fed = useFeed<DetailAnswer>(address("detail", { name, precision: range }), pollEvery(range));
  const kind = fed.data?.kind;
  return (
    <>
      <Toolbar title={<Name name={name} />} ranged>
        {kind && <span class="tag">{kind}</span>}
      </Toolbar>
      <Gate fed={fed}>{(answer) => <Detail answer={answer} />}</Gate>
    </>
  );
}

function Detail({ answer }: { answer: DetailAnswer }) {
  const { name, kind, window, summary, total, siblings, labels, hours, now, marks, forecast } = answer;
  const unit = unitOf(name);
  const lines = detailLines(answer);
  const precision = kind === "histogram" ? window.histograms : window.precision;
  const fits = forecast !== null && forecast.precision === precision && kind !== "histogram";
  const band = fits ? [...forecast.past, ...forecast.ahead] : [];
  const outside = fits ? forecast.past.filter((each) => each.outside && each.value !== null) : [];
  return (
    <>
      <ChartGroup
        title={kind === "histogram" ? "Percentiles" : "Values"}
        id="values"
        lines={lines}
        precision={precision}
        start={kind === "histogram" ? window.histograms_start : window.start}
        end={window.end}
        now={now}
        marks={marks}
        empty={
          <Empty title="Nothing in this window" code={`redmeter series '${name.replace(/'/g, "'\\''")}'`}>
            Choose a wider range below, or wait for it to happen.
          </Empty>
        }
        {...(band.length > 0
          ? { band, outside: outside.map((each) => [each.start, each.value ?? 0] as [number, number]) }
          : {})}
        actions={
          answer.added === 0 && (
            <Go view="overview" more={{ series: [name] }} class="to">
              On the overview
            </Go>
          )
        }
      />
      <dl class="stats">
        {total !== null && (
          <div>
            <dt>Ever counted</dt>
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
                  {percent(forecast.level)} of values within the band, by{" "}
                  <T text={forecast.method} most={200} />; {outside.length} of {forecast.past.length} fell
                  outside.
                </>
              )}
            </dd>
          </div>
        )}
      </dl>
      {summary && summary.buckets.length > 0 && (
        <Card
          title="Spread"
          about={`${number(summary.count)} values within ${durationLabel(window.end - window.start)}`}
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
                        <T text={each.value} most={120} />
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
        <Card title="Label sets" about={`${siblings.length} of the same name, the busiest first`}>
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
          about={`${kind === "histogram" ? "the p95 of each hour; " : ""}days and hours of UTC`}
        >
          <Matrix series={hours} unit={unit} />
        </Card>
      )}
    </>
  );
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
    ["Deviation", value(summary.stddev, unit)],
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
