// The legend: a table whose check boxes switch lines on and off.
import { value } from "../lib/units";
import { T } from "../parts/text";
import { ToSeries } from "../parts/go";
import { figuresOf, type Line } from "./lines";
import { Swatch } from "./swatch";

interface Props {
  title: string;
  lines: readonly Line[];
  places: readonly number[];
  hidden: readonly string[];
  from: number;
  to: number;
  toggle: (key: string) => void;
  /** Whether lines lead to pages of their own; the name of the series of a line. */
  series?: (line: Line) => string | null;
}

export function Legend({ title, lines, places, hidden, from, to, toggle, series }: Props) {
  return (
    <div class="scroll" role="region" aria-label={`Legend of ${title}`} tabIndex={0}>
      <table class="legend">
        <thead>
          <tr>
            <th scope="col">Shown</th>
            <th scope="col" class="figure">
              Last
            </th>
            <th scope="col" class="figure">
              Min
            </th>
            <th scope="col" class="figure">
              Max
            </th>
            <th scope="col" class="figure">
              Sum
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line, i) => {
            const { last, low, high, sum } = figuresOf(line, from, to);
            const off = hidden.includes(line.key);
            const name = series?.(line) ?? null;
            return (
              <tr key={line.key} class={off ? "off" : ""}>
                <th scope="row">
                  <label>
                    <input type="checkbox" checked={!off} onChange={() => toggle(line.key)} />
                    <Swatch place={places[i] ?? i} off={off} />
                    <span class="name">
                      <T text={line.label} most={120} />
                    </span>
                  </label>
                  {name !== null && (
                    <ToSeries name={name} class="to">
                      open
                      <span class="away">
                        {" "}
                        <T text={name} most={120} />
                      </span>
                    </ToSeries>
                  )}
                </th>
                <td class="figure">{value(last, line.unit)}</td>
                <td class="figure">{value(low, line.unit)}</td>
                <td class="figure">{value(high, line.unit)}</td>
                <td class="figure">{value(sum, line.unit)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
