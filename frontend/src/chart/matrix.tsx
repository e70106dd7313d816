// Days and hours: the 1 h samples as a table whose cells are shaded by their value.
import type { Series } from "../api/types";
import { weekdayOf } from "../lib/time";
import { value, type Unit } from "../lib/units";
import { state } from "../state/page";
import { days, extent, level, LEVELS, placeIn } from "./grid";

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

export function Matrix({ series, unit }: { series: Series; unit: Unit }) {
  const { clock } = state.value;
  const all = days(series, clock);
  const scale = extent(series);
  const last = series.start + (series.values.length - 1) * series.precision;
  const [today, newest] = placeIn(last, clock);
  return (
    <>
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
                <th scope="row">{weekdayOf(day.start, clock)}</th>
                {HOURS.map((hour) => {
                  const cell = day.hours[hour];
                  if (cell === undefined)
                    return (
                      <td key={hour} class="none">
                        <span class="away">
                          {day.start === today && hour > newest ? "not yet" : "not kept"}
                        </span>
                      </td>
                    );
                  if (cell === null)
                    return (
                      <td key={hour} class="gap">
                        <span class="away">nothing measured</span>
                      </td>
                    );
                  const open = series.partial && day.start === today && hour === newest;
                  const text = value(cell, unit) + (open ? " so far" : "");
                  const nothing = cell === 0 && series.kind === "counter";
                  const shade = nothing || !scale ? 0 : level(cell, ...scale);
                  return (
                    <td
                      key={hour}
                      class={`h${shade}${open ? " open" : ""}`}
                      title={`${weekdayOf(day.start, clock)}, ${hour}:00${clock === "utc" ? " UTC" : ""}: ${text}`}
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
      {scale && (
        <p class="scale">
          <span>{value(scale[0], unit)}</span>
          <span class="scale-steps" aria-hidden="true">
            {Array.from({ length: LEVELS }, (_, i) => (
              <i key={i} class={`h${i + 1}`} />
            ))}
          </span>
          <span>{value(scale[1], unit)}</span>
          {series.partial !== null && <span class="faint">Outlined: the current hour.</span>}
        </p>
      )}
    </>
  );
}
