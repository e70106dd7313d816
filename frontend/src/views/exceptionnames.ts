// Short names of exceptions, and their counts as a line of a chart.
import type { ErrorGroup } from "../api/types";
import type { Line } from "../chart/lines";

/** The class without its module: "shop.errors.PaymentFailed" is "PaymentFailed". */
export function typeOf(type: string): string {
  return /^[\w.]+\.(\w+)$/.exec(type)?.[1] ?? type;
}

/** The counts of a group, whose newest interval is still running. */
export function countLine({ values }: Pick<ErrorGroup, "values">, start: number, precision: number): Line {
  return {
    key: "exceptions",
    label: "exceptions",
    unit: "",
    kind: "counter",
    sums: true,
    precision,
    start,
    values,
    partial: true,
  };
}
