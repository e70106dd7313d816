// The start of the retention: it depends on the precision, and histograms have their own.
import type { StoreInfo } from "../api/types";
import type { Group } from "./lines";

/** The start of the oldest interval that is kept, Unix seconds; null where that is not known. */
export function keptSince(
  { kind, precision }: Pick<Group, "kind" | "precision">,
  store: Pick<StoreInfo, "retention" | "histograms"> | null,
  now: number,
): number | null {
  const kept = kind === "histogram" ? store?.histograms : store?.retention;
  const samples = kept?.[String(precision)];
  return samples === undefined ? null : (Math.floor(now / precision) - samples + 1) * precision;
}
