// Since when intervals are kept: each width for a time of its own, histograms for another than counters.
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
