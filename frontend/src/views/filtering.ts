// Where a filter looks: anywhere in the names; of more names than are looked at, where they begin, for
// these are all found; and if none begins so, in as many as are looked at.
import { isPattern, patternOf } from "./names";

export type Place = "anywhere" | "beginning" | "first";

/** The pattern of what was typed; "" for all. */
export function patternIn(place: Place, filter: string): string {
  if (filter === "") return "";
  return place === "beginning" && !isPattern(filter) ? `${filter}*` : patternOf(filter);
}

interface Told {
  found: number;
  total: number;
  examined: number;
}

/** Links for an empty list, by the answer. */
export function nextPlace(place: Place, filter: string, { found, total, examined }: Told): Place {
  if (filter === "" || isPattern(filter)) return place;
  if (place === "anywhere" && examined < total) return "beginning";
  if (place === "beginning" && found === 0) return "first";
  return place;
}
