// Short names of exceptions, and their counts as a line of a chart.
import type { ExceptionSummary } from "../api/types";
import type { Line } from "../chart/lines";

/** The class without its module: "shop.errors.PaymentFailed" is "PaymentFailed". */
export function typeOf(type: string): string {
  return /^[\w.]+\.(\w+)$/.exec(type)?.[1] ?? type;
}

/** The counts of a group. */
export function countLine({ series }: Pick<ExceptionSummary, "series">): Line {
  return {
    key: "exceptions",
    label: "exceptions",
    unit: "",
    kind: "counter",
    sums: true,
    precision: series.precision,
    start: series.start,
    values: series.values,
    partial: series.partial,
  };
}
