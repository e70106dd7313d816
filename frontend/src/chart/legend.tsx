// The legend: a table whose check boxes switch lines on and off, and the overlays. Few lines are one row.
import type { ComponentChildren } from "preact";
import { number, percent, value } from "../lib/units";
import { T } from "../parts/text";
import { ToSeries } from "../parts/go";
import { figuresOf, type Line } from "./lines";
import { BandSwatch, RingSwatch, Swatch } from "./swatch";

/** The name of the expected range in the address. */
export const EXPECTED = ":expected";
export const OUTSIDE = ":outside";

/** Lines of a legend that is one row, above its chart. */
export const FEW = 3;

interface Props {
  title: string;
  lines: readonly Line[];
  places: readonly number[];
  hidden: readonly string[];
  from: number;
  to: number;
  /** Number of intervals with an expected range, and of those outside it. */
  expected: { known: number; outside: number } | null;
  toggle: (key: string) => void;
  /** Whether it is a row above its chart. */
  brief: boolean;
  /** The caption of its chart; none for the first of a group. */
  of?: string;
  /** The series that a line links to; without it, lines have no links. */
  series?: (line: Line) => string | null;
}

export function Legend({
  title,
  lines,
  places,
  hidden,
  from,
  to,
  expected,
  toggle,
  brief,
  of,
  series,
}: Props) {
  const sums = lines.some((line) => line.sums);
  return (
    <div class="scroll" role="region" aria-label={of ? `Lines: ${of}` : `Legend of ${title}`} tabIndex={0}>
      <table class={brief ? "legend brief" : "legend"}>
        <thead class={brief ? "away" : ""}>
          <tr>
            <th scope="col">Shown</th>
            {["Last", "Max", ...(sums ? ["Sum"] : [])].map((each) => (
              <th scope="col" class="figure" key={each}>
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line, i) => {
            const { last, running, high, sum } = figuresOf(line, from, to);
            const off = hidden.includes(line.key);
            const name = series?.(line) ?? null;
            return (
              <tr key={line.key} class={off ? "off" : ""}>
                <th scope="row">
                  <label>
                    <input type="checkbox" checked={!off} onChange={() => toggle(line.key)} />
                    <Swatch place={places[i] ?? i} off={off} />
                    <span class="name">
                      <T text={line.label} most={120} edges />
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
                <td class="figure" data-title="last">
                  {value(last, line.unit)}
                  {running !== null && <span class="so-far">{value(running, line.unit)} so far</span>}
                </td>
                <td class="figure" data-title="max">
                  {value(high, line.unit)}
                </td>
                {sums && (
                  <td class="figure" data-title={line.sums ? "sum" : undefined}>
                    {line.sums ? value(sum, line.unit) : ""}
                  </td>
                )}
              </tr>
            );
          })}
          {expected && (
            <>
              <OverlayRow
                off={hidden.includes(EXPECTED)}
                toggle={() => toggle(EXPECTED)}
                text="expected range"
              >
                <BandSwatch />
              </OverlayRow>
              <OverlayRow
                off={hidden.includes(OUTSIDE)}
                toggle={() => toggle(OUTSIDE)}
                text="outside the expected range"
                note={
                  expected.known > 0
                    ? `${number(expected.outside)} of ${number(expected.known)} (${percent(expected.outside / expected.known)})`
                    : ""
                }
              >
                <RingSwatch />
              </OverlayRow>
            </>
          )}
        </tbody>
      </table>
    </div>
  );
}

function OverlayRow({
  off,
  toggle,
  text,
  note = "",
  children,
}: {
  off: boolean;
  toggle: () => void;
  text: string;
  note?: string;
  children: ComponentChildren;
}) {
  return (
    <tr class={off ? "off" : ""}>
      <th scope="row">
        <label>
          <input type="checkbox" checked={!off} onChange={toggle} />
          {children}
          {text}
        </label>
      </th>
      <td class="figure" colSpan={3}>
        {note}
      </td>
    </tr>
  );
}
