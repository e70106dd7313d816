// A click on a chart: a mark opens its verdict, an anomaly its explanation. Marks are buttons, too.
import type { Mark } from "../api/types";
import { within } from "../chart/describe";
import { ago } from "../lib/time";
import { T } from "../parts/text";
import { set } from "../state/page";

/** Maximum number of marks with a button. */
const MOST = 5;

export function openMark(mark: Pick<Mark, "time">): void {
  set({ mark: Math.floor(mark.time), explain: "" }, true);
}

/** Open the mark or the anomaly of the clicked interval. */
export function picked(
  moment: number,
  precision: number,
  marks: readonly Mark[],
  outside: readonly [number, number][],
): void {
  const mark = within(marks, moment, precision).at(-1);
  if (mark) openMark(mark);
  else if (outside.some(([start]) => start === moment))
    set({ since: moment, until: moment + precision, explain: "hits", mark: null }, true);
}

export function Marks({ marks, now }: { marks: readonly Mark[]; now: number }) {
  if (marks.length === 0) return null;
  return (
    <p class="fine marks">
      Marks:
      {marks
        .slice(-MOST)
        .reverse()
        .map((mark) => (
          <button type="button" class="noun" key={mark.time} onClick={() => openMark(mark)}>
            <T text={mark.label} most={40} /> {ago(mark.time, now)}
          </button>
        ))}
    </p>
  );
}
