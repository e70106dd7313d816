// The buckets of a histogram as a few bars of equal width: on a logarithmic axis if all values are
// positive, as the buckets are logarithmic, else on a linear one.

export interface Bin {
  low: number;
  high: number;
  count: number;
}

type Buckets = readonly (readonly [number, number, number])[];

/** Whether the bars are of equal width on a logarithmic axis. */
export function logarithmic(buckets: Buckets): boolean {
  return (buckets[0]?.[0] ?? 0) > 0;
}

export function bins(buckets: Buckets, most = 48): Bin[] {
  const first = buckets[0];
  const last = buckets.at(-1);
  if (!first || !last) return [];
  const log = logarithmic(buckets);
  const to = (value: number) => (log ? Math.log(value) : value);
  const back = (value: number) => (log ? Math.exp(value) : value);
  const from = to(first[0]);
  const span = to(last[1]) - from;
  if (!(span > 0) || !Number.isFinite(span)) {
    return [{ low: first[0], high: last[1], count: buckets.reduce((sum, each) => sum + each[2], 0) }];
  }
  const narrowest = Math.min(
    ...buckets.map(([low, high]) => to(high) - to(low)).filter((width) => width > 0),
  );
  const count = Math.max(1, Math.min(most, Math.round(span / narrowest) || 1));
  const width = span / count;
  const bars: Bin[] = Array.from({ length: count }, (_, i) => ({
    low: back(from + i * width),
    high: back(from + (i + 1) * width),
    count: 0,
  }));
  for (const [low, high, number] of buckets) {
    const middle = (to(low) + to(high)) / 2;
    const bin = bars[Math.min(count - 1, Math.max(0, Math.floor((middle - from) / width)))];
    if (bin) bin.count += number;
  }
  return bars;
}
