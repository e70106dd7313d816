// Days and hours: the 1 h samples as a table whose cells are shaded by their value. Hours of UTC.
import type { Series } from "../api/types";
import { weekdayOf } from "../lib/time";
import { value, type Unit } from "../lib/units";
import { days, level } from "./grid";

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

export function Matrix({ series, unit }: { series: Series; unit: Unit }) {
  const all = days(series);
  const most = Math.max(0, ...series.values.map((each) => each ?? 0));
  return (
    <div class="scroll" role="region" aria-label="Table: Days and hours" tabIndex={0}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">
              <span class="away">Day</span>
            </th>
            {HOURS.map((hour) => (
              <th scope="col" key={hour}>
                {String(hour).padStart(2, "0")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.map((day) => (
            <tr key={day.start}>
              <th scope="row">{weekdayOf(day.start, "utc")}</th>
              {HOURS.map((hour) => {
                const cell = day.hours[hour];
                if (cell === undefined)
                  return (
                    <td key={hour} class="none">
                      <span class="away">not kept</span>
                    </td>
                  );
                if (cell === null)
                  return (
                    <td key={hour} class="gap">
                      <span class="away">nothing measured</span>
                    </td>
                  );
                const text = value(cell, unit);
                return (
                  <td
                    key={hour}
                    class={`h${level(cell, most)}`}
                    title={`${weekdayOf(day.start, "utc")}, ${hour}:00 UTC: ${text}`}
                  >
                    <span class="away">{text}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
