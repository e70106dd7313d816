// All precisions of a series as small charts, each of which leads to its range.
import type { DetailAnswer } from "../api/types";
import { Chart } from "../chart/chart";
import { durationLabel } from "../lib/ranges";
import { unitOf } from "../lib/units";
import { Card } from "../parts/card";
import { state, store, zoom } from "../state/page";
import { smallLine } from "./detaillines";

export function Precisions({ answer }: { answer: DetailAnswer }) {
  const { precisions, now, kind, window } = answer;
  const { clock } = state.value;
  const shown = kind === "histogram" ? window.histograms : window.precision;
  const kept = kind === "histogram" ? store.value?.histograms : store.value?.retention;
  return (
    <Card title="All precisions" about={kind === "histogram" ? "p95 per interval" : undefined}>
      <ul class="smalls">
        {precisions.map((series) => {
          const { precision, values, start } = series;
          const samples = kept?.[String(precision)] ?? values.length;
          const newest = Math.floor(now / precision) * precision;
          return (
            <li key={precision}>
              <button
                type="button"
                class="small-chart"
                aria-pressed={precision === shown}
                onClick={() => zoom(null, { range: precision, last: null })}
              >
                <span class="small-title">
                  {durationLabel(precision * samples)}{" "}
                  <span class="faint">by {durationLabel(precision)}</span>
                </span>
                {values.length > 0 ? (
                  <Chart
                    title=""
                    lines={[smallLine(series)]}
                    unit={unitOf(series.name)}
                    precision={precision}
                    height={56}
                    from={Math.min(start, newest - (samples - 1) * precision)}
                    to={newest + precision}
                    now={now}
                    clock={clock}
                    small
                  />
                ) : (
                  <span class="small-none">nothing</span>
                )}
              </button>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
