// Units by the suffix of a name, and the format of values: `_seconds` as ms or s, `_bytes` as kB,
// `_ratio` as %. Everything else is a number.

export type Unit = "" | "seconds" | "bytes" | "ratio";

/** The unit of a series by its name, ignoring labels. */
export function unitOf(name: string): Unit {
  const base = name.replace(/\{.*$/s, "");
  if (/(^|_)seconds$/.test(base)) return "seconds";
  if (/(^|_)bytes$/.test(base)) return "bytes";
  if (/(^|_)ratio$/.test(base)) return "ratio";
  return "";
}

const formats = new Map<string, Intl.NumberFormat>();

function fixed(value: number, low: number, high: number): string {
  const key = `${low}:${high}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat("en", { minimumFractionDigits: low, maximumFractionDigits: high });
    formats.set(key, format);
  }
  return format.format(value).replace("-", "−");
}

/** Three figures or so: 0.0012, 1.23, 12.3, 123. */
export function figures(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-6) return value.toExponential(1);
  if (size < 1) return String(Number(value.toPrecision(2))).replace(/^-/, "−");
  return fixed(value, 0, size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** A plain number, in full up to 99,999 and with k, M, G, T, P, E beyond. */
export function number(value: number): string {
  const size = Math.abs(value);
  if (size < 1e5) return Number.isInteger(value) ? fixed(value, 0, 0) : figures(value);
  for (const [step, letter] of [
    [1e18, "E"],
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size >= step) return size >= 1e21 ? value.toExponential(2) : figures(value / step) + letter;
  }
  return figures(value);
}

export function seconds(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-6) return figures(value * 1e9) + " ns";
  if (size < 1e-3) return figures(value * 1e6) + " µs";
  if (size < 0.9995) return figures(value * 1e3) + " ms";
  if (size < 120) return figures(value) + " s";
  if (size < 7200) return figures(value / 60) + " min";
  if (size < 172_800) return figures(value / 3600) + " h";
  return figures(value / 86_400) + " d";
}

function scaled(value: number, letters: readonly string[], step: number): string {
  let power = 0;
  while (power < letters.length - 1 && Math.abs(value) >= step ** (power + 1)) power++;
  return `${figures(value / step ** power)} ${letters[power]}`;
}

export const bytes = (value: number) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"], 1000);

/** Bytes of a server's memory, as servers report and limit it: by 1024. */
export const memory = (value: number) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);

/** A rate, from events per second, in the unit in which it is not tiny: "12.3 per second",
 * "4 per hour". */
export function rate(perSecond: number): string {
  const size = Math.abs(perSecond);
  if (size === 0 || size >= 0.1) return `${figures(perSecond)} per second`;
  if (size * 60 >= 1) return `${figures(perSecond * 60)} per minute`;
  if (size * 3600 >= 1) return `${figures(perSecond * 3600)} per hour`;
  return `${figures(perSecond * 86_400)} per day`;
}

/** A share, 0 to 1, as a percentage: 0.03 %, 1.2 %, 45 %. */
export function percent(share: number): string {
  const value = share * 100;
  const size = Math.abs(value);
  if (size === 0) return "0 %";
  if (size < 0.01) return "< 0.01 %";
  return fixed(value, 0, size < 1 ? 2 : size < 10 ? 1 : 0) + " %";
}

/** Durations in a text as this page writes them: "3m" as "3 min". */
export function spaced(text: string): string {
  const durations = /(?<=^|[\s(])(\d+)(ms|s|m|h|d)(?=$|[\s),.;:])/g;
  return text.replace(durations, (_, size, unit) => `${size} ${unit === "m" ? "min" : unit}`);
}

/** A value in its unit; a dash where there is none. */
export function value(of: number | null | undefined, unit: Unit): string {
  if (of === null || of === undefined || !Number.isFinite(of)) return "–";
  if (unit === "seconds") return seconds(of);
  if (unit === "bytes") return bytes(of);
  if (unit === "ratio") return percent(of);
  return number(of);
}
