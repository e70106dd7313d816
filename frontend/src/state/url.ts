// The state of the page and its URL. The query contains everything worth sharing with a colleague, except
// for defaults. It is untrusted: its values are validated, and invalid ones become defaults.
import type { Clock } from "../lib/time";
import { listOf, VIEWS, type View } from "./views";

export type { View };
export const AGAINST = ["", "yesterday", "last-week"] as const;
export type Against = (typeof AGAINST)[number];
export type Theme = "system" | "light" | "dark";

export interface State {
  view: View;
  /** Precision of the range, seconds. */
  range: number;
  paused: boolean;
  clock: Clock;
  theme: Theme;
  /** Length of a window that ends now, seconds; null: as far back as the precision reaches. */
  last: number | null;
  /** The zoom, Unix seconds; both or none. */
  since: number | null;
  until: number | null;
  /** The period that figures are compared with: "" is the one right before. */
  against: Against;
  /** The metric, or "error rate", that is explained within the zoom; "" for none. */
  explain: string;
  /** The mark whose deploy verdict is open, Unix seconds. */
  mark: number | null;
  /** Whether axes of durations are logarithmic; null: where their values span over a decade. */
  log: boolean | null;
  /** Series of the chart, instead of its default ones. */
  series: string[];
  /** Lines that are hidden in the legend. */
  hidden: string[];
  /** Charts whose table is open. */
  tables: string[];
  /** Of the series page. */
  name: string;
  order: string;
  /** Of the list of counters: "" or another kind of series. */
  kind: string;
  filter: string;
  offset: number;
  logger: string;
  severity: string;
}

export const USUAL: State = {
  view: "overview",
  range: 60,
  paused: false,
  clock: "local",
  theme: "system",
  last: null,
  since: null,
  until: null,
  against: "",
  explain: "",
  mark: null,
  log: null,
  series: [],
  hidden: [],
  tables: [],
  name: "",
  order: "",
  kind: "",
  filter: "",
  offset: 0,
  logger: "",
  severity: "",
};

/** Maximum number of names in a list and of characters in a text of a URL. */
const MOST = 20;
const LONGEST = 1000;
/** The latest moment that the API accepts, Unix seconds: the year 2100. */
const LATEST = 4_102_444_800;

function one<T extends string>(value: string | null, of: readonly T[], usual: T): T {
  return of.find((each) => each === value) ?? usual;
}

function whole(value: string | null, low: number, high: number): number | null {
  if (value === null || !/^\d{1,12}$/.test(value)) return null;
  const number = Number(value);
  return number >= low && number <= high ? number : null;
}

/** The view; without a name, the list that it belongs to. The name of a route can be empty. */
function listed(view: View, name: string, named: boolean): View {
  return name || (view === "route" && named) ? view : listOf(view);
}

export function parse(query: string): State {
  const from = new URLSearchParams(query);
  const text = (key: string) => (from.get(key) ?? "").slice(0, LONGEST);
  const list = (key: string) =>
    [...new Set(from.getAll(key))]
      .filter(Boolean)
      .slice(0, MOST)
      .map((each) => each.slice(0, LONGEST));
  const since = whole(from.get("since"), 0, LATEST);
  const until = whole(from.get("until"), 0, LATEST);
  const zoomed = since !== null && until !== null && since < until;
  const name = text("name");
  const view = one(from.get("view"), VIEWS, USUAL.view);
  return {
    view: listed(view, name, from.has("name")),
    range: whole(from.get("range"), 1, 31_622_400) ?? USUAL.range,
    paused: from.get("paused") === "1",
    clock: one(from.get("clock"), ["local", "utc"] as const, USUAL.clock),
    theme: one(from.get("theme"), ["system", "light", "dark"] as const, USUAL.theme),
    last: zoomed ? null : whole(from.get("last"), 1, 31_622_400),
    since: zoomed ? since : null,
    until: zoomed ? until : null,
    against: one(from.get("against"), AGAINST, ""),
    explain: text("explain"),
    mark: whole(from.get("mark"), 0, LATEST),
    log: from.has("log") ? from.get("log") === "1" : null,
    series: list("series"),
    hidden: list("hidden"),
    tables: list("table"),
    name,
    order: text("order"),
    kind: text("kind"),
    filter: text("filter"),
    offset: whole(from.get("offset"), 0, 100_000) ?? 0,
    logger: text("logger"),
    severity: text("severity"),
  };
}

/** The query of a state: "" for the default state, else it begins with "?". */
export function serialise(state: State): string {
  const to = new URLSearchParams();
  const put = (key: string, value: string | number, usual: string | number) => {
    if (value !== usual) to.set(key, String(value));
  };
  put("view", state.view, USUAL.view);
  if (state.view === "route") to.set("name", state.name);
  else put("name", state.name, "");
  put("range", state.range, USUAL.range);
  if (state.last !== null) to.set("last", String(state.last));
  if (state.since !== null && state.until !== null) {
    to.set("since", String(state.since));
    to.set("until", String(state.until));
  }
  put("against", state.against, "");
  put("explain", state.explain, "");
  if (state.mark !== null) to.set("mark", String(state.mark));
  put("order", state.order, "");
  put("kind", state.kind, "");
  put("filter", state.filter, "");
  put("offset", state.offset, 0);
  put("logger", state.logger, "");
  put("severity", state.severity, "");
  for (const name of state.series) to.append("series", name);
  for (const name of state.hidden) to.append("hidden", name);
  for (const name of state.tables) to.append("table", name);
  if (state.log !== null) to.set("log", state.log ? "1" : "0");
  if (state.paused) to.set("paused", "1");
  put("clock", state.clock, USUAL.clock);
  put("theme", state.theme, USUAL.theme);
  const query = to.toString();
  return query ? `?${query}` : "";
}

/** The state of another view: it keeps the time window, but no state of the view before. */
export function elsewhere(state: State, view: View, more: Partial<State> = {}): State {
  const { range, last, since, until, against, paused, clock, theme, log } = state;
  return { ...USUAL, range, last, since, until, against, paused, clock, theme, log, view, ...more };
}
