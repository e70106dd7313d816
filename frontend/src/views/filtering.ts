// Where a filter searches: anywhere in the names; if there are more names than one request examines, at their
// beginning, which finds all that match; and if none does, anywhere in the first ones.
import { isPattern, patternOf } from "./names";

export type Place = "anywhere" | "beginning" | "first";

/** The pattern for a filter; "" for all names. */
export function patternIn(place: Place, filter: string): string {
  if (filter === "") return "";
  return place === "beginning" && !isPattern(filter) ? `${filter}*` : patternOf(filter);
}

interface ListCounts {
  found: number;
  total: number;
  examined: number;
}

/** The place to search next, by the answer. */
export function nextPlace(place: Place, filter: string, { found, total, examined }: ListCounts): Place {
  if (filter === "" || isPattern(filter)) return place;
  if (place === "anywhere" && examined < total) return "beginning";
  if (place === "beginning" && found === 0) return "first";
  return place;
}
