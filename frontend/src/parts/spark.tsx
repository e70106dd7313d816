// A small line of values without axes, on a base line at zero. The running interval is dashed, a gap is a gap.

interface Props {
  values: readonly (number | null)[];
  partial?: boolean;
  /** The number of intervals in the width; fewer values are aligned to the right. */
  slots?: number;
}

const WIDTH = 120;
const HEIGHT = 24;

/** The complete intervals, the step to the running one, and the base line. */
export function paths(
  values: readonly (number | null)[],
  partial: boolean,
  slots: number,
): [ended: string, running: string, base: string] {
  const most = Math.max(...values.map((value) => value ?? 0), 0);
  const least = Math.min(...values.map((value) => value ?? 0), 0);
  const span = most - least || 1;
  const wide = Math.max(slots - 1, 1);
  const first = slots - values.length;
  const height = (value: number) => (HEIGHT - 2 - ((value - least) / span) * (HEIGHT - 4)).toFixed(1);
  const point = (i: number, value: number) => `${(((first + i) / wide) * WIDTH).toFixed(1)} ${height(value)}`;
  // Values that were not read are not zero.
  const base = values.length > 0 ? `M0 ${height(0)}H${WIDTH}` : "";
  let ended = "";
  let open = false;
  values.forEach((value, i) => {
    if (value === null || (partial && i === values.length - 1)) {
      open = false;
      return;
    }
    ended += `${open ? "L" : "M"}${point(i, value)}`;
    // A value alone between gaps would be no line.
    if (!open && (values[i + 1] ?? null) === null) ended += "h0.1";
    open = true;
  });
  const last = values.at(-1);
  const before = values.at(-2);
  if (!partial || last === null || last === undefined) return [ended, "", base];
  const at = values.length - 1;
  if (before === null || before === undefined) return [ended, `M${point(at, last)}h0.1`, base];
  return [ended, `M${point(at - 1, before)}L${point(at, last)}`, base];
}

export function Spark({ values, partial = true, slots = values.length }: Props) {
  const [ended, running, base] = paths(values, partial, Math.max(slots, values.length));
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={base} class="base" />
      <path d={ended} />
      {running && <path d={running} class="running" />}
    </svg>
  );
}
