// The distribution of a histogram, as bars.
import type { Summary } from "../api/types";
import { number, value, type Unit } from "../lib/units";
import { bins, logarithmic } from "./bins";

const WIDTH = 640;
const HEIGHT = 140;

export function Histogram({ summary, unit }: { summary: Summary; unit: Unit }) {
  const bars = bins(summary.buckets);
  const first = bars[0];
  const last = bars.at(-1);
  if (!first || !last) return null;
  const most = Math.max(...bars.map((bar) => bar.count), 1);
  const step = WIDTH / bars.length;
  const middle = bars[Math.floor(bars.length / 2)];
  return (
    <figure class="histogram">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${number(summary.count)} values between ${value(summary.low, unit)} and ${value(summary.high, unit)}`}
      >
        {bars.map((bar, i) => {
          const height = bar.count === 0 ? 0 : Math.max(1.5, (bar.count / most) * (HEIGHT - 4));
          return (
            <rect
              key={i}
              x={(i * step + step * 0.08).toFixed(2)}
              y={(HEIGHT - height).toFixed(2)}
              width={(step * 0.84).toFixed(2)}
              height={height.toFixed(2)}
            >
              <title>{`${value(bar.low, unit)} to ${value(bar.high, unit)}: ${number(bar.count)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends">
        <span>{value(first.low, unit)}</span>
        {bars.length > 4 && middle && (
          <span>
            {value(middle.low, unit)}
            {logarithmic(summary.buckets) && <span class="faint"> · logarithmic</span>}
          </span>
        )}
        <span>{value(last.high, unit)}</span>
      </p>
    </figure>
  );
}
