// Very many series are ranked periodically in the background: which ones a list covers.
import { ago } from "../lib/time";
import { number } from "../lib/units";

/** Rows that a ranking keeps, and series that it reads; see reading/page/background_ranking.py. */
export const RANKED_ROWS = 1_000;
const RANKED_SERIES = 100_000;

interface Answer {
  examined: number;
  total: number;
  ranked_at: number | null;
}

/** The series that a list covers, as a clause; "" if it covers all of them and is current. */
export function madeFrom({ examined, total, ranked_at }: Answer, now: number, ranks: boolean): string {
  const first = `the first ${number(examined)} of ${number(total)} series by name`;
  if (ranked_at === null) {
    if (examined >= total) return "";
    return ranks ? `, from ${first}; ranking all …` : `, from ${first}`;
  }
  const all = examined >= total ? "" : ` of ${number(total)}`;
  const read = all && examined >= RANKED_SERIES ? first : `${number(examined)}${all} series`;
  return `, ranked ${ago(ranked_at, now)} from ${read}`;
}

/** Rows of a list: one for each name, or each label set; gauges, which are not summed, until they are many. */
export type Rows = "names" | "label sets" | "few gauges";

/** Label sets that are listed one by one. */
const MOST_GAUGES = 50;

/** The rows to list next: if there are more names than a ranking keeps, label sets are paged through instead. */
export function nextRows(
  rows: Rows,
  { found, examined, total, ranked_at }: Answer & { found: number },
): Rows {
  if (rows === "few gauges") return total > MOST_GAUGES ? "names" : rows;
  if (rows === "label sets") return rows;
  const few = ranked_at === null ? examined >= total || found <= examined / 2 : found <= RANKED_ROWS;
  return few ? rows : "label sets";
}

/** The number of rows that paging can reach. */
export function reachable({ found, ranked_at }: { found: number; ranked_at: number | null }): number {
  return ranked_at === null ? found : Math.min(found, RANKED_ROWS);
}
