// The line of a series: a step as wide as its interval, so a value is drawn where it was recorded,
// regardless of the width of the other intervals. The running interval ends at the present.
import type uPlot from "uplot";

/** Where an interval ends on the chart, Unix seconds. */
export function endOf(start: number, width: number, now: number): number {
  return Math.max(start + width * 0.15, Math.min(start + width, now));
}

/** A builder of uPlot's paths. `width`: of an interval, seconds. */
export function steps(
  dashed: boolean,
  width: () => number,
  now: () => number,
  filled: () => boolean,
): uPlot.Series.PathBuilder {
  return (u, index) => {
    const stroke = new Path2D();
    const fill = filled() ? new Path2D() : null;
    const x = u.data[0];
    const column = u.data[index] ?? [];
    const { top, height } = u.bbox;
    const zero = u.scales["y"]?.distr === 3 ? top + height : u.valToPos(0, "y", true);
    const floor = Math.min(top + height, Math.max(top, zero));
    const { min = -Infinity, max = Infinity } = u.scales["x"] ?? {};
    let open = false;
    for (let i = 0; i < x.length; i++) {
      const value = column[i];
      const start = x[i];
      if (value === undefined || start === undefined) continue;
      // Values next to the plot would show at its edges, as the rise to it.
      if (value === null || start >= max || start + width() <= min) {
        open = false;
        continue;
      }
      const left = Math.round(u.valToPos(start, "x", true));
      const end = Math.round(u.valToPos(endOf(start, width(), now()), "x", true));
      const right = Math.max(end, left + 2 * devicePixelRatio);
      const y = u.valToPos(value, "y", true);
      // The interval before the running one is in the dashed column only for the step: it is drawn solid.
      const leads =
        dashed && !open && i + 1 < x.length && column.slice(i + 1).some((next) => next !== undefined);
      if (leads) stroke.moveTo(right, y);
      else {
        if (open) stroke.lineTo(left, y);
        else stroke.moveTo(left, y);
        stroke.lineTo(right, y);
        fill?.rect(left, Math.min(y, floor), right - left, Math.abs(floor - y));
      }
      open = true;
    }
    return { stroke, fill, gaps: [], flags: 3 };
  };
}
