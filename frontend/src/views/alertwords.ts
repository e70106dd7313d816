// Words of the alerts view: patterns of silences, days, times of a window.
import type { AlertRule, AlertsAnswer, MaintenanceStatus } from "../api/types";
import type { State } from "../state/url";
import type { View } from "../state/views";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** A pattern that matches exactly this name: `*`, `?` and `[` lose their meaning. */
export function literal(name: string): string {
  return name.replace(/[*?[]/g, "[$&]");
}

/** "3 min", "2 h", "5 d": whole units, rounded down. */
export function span(seconds: number): string {
  const [step, unit] =
    seconds < 120 ? [1, "s"] : seconds < 7200 ? [60, "min"] : seconds < 172_800 ? [3600, "h"] : [86_400, "d"];
  return `${Math.max(0, Math.floor(seconds / step))} ${unit}`;
}

/** "Sat, Sun 23:00 to 01:00 UTC". */
export function windowOf({ days, begin, end }: MaintenanceStatus): string {
  const listed = days.length === DAYS.length ? "daily" : days.map((day) => DAYS[day] ?? "?").join(", ");
  return `${listed} ${clockOf(begin)} to ${clockOf(end)} UTC`;
}

function clockOf(minutes: number): string {
  const two = (number: number) => String(number).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/** "2 firing, 1 pending, 14 ok". */
export function summary({ rules }: Pick<AlertsAnswer, "rules">): string {
  const counts = { firing: 0, pending: 0, ok: 0 };
  for (const rule of rules) {
    for (const alert of rule.alerts) counts[alert.status] += 1;
    counts.ok += rule.ok;
  }
  const parts = Object.entries(counts).filter(([status, count]) => count > 0 || status === "firing");
  return parts.map(([status, count]) => `${count.toLocaleString("en")} ${status}`).join(", ");
}

/** The periods in which alerts about a series fired, newest first; those that still fire end now. A rule with
 * `by` has an alert for each value of a label, which excludes series with other values. */
export function firingOf({ rules, transitions, now }: AlertsAnswer, series: string) {
  const [base = "", labels = ""] = series.split("{");
  const metrics = new Map(rules.map((rule) => [rule.name, rule]));
  const periods: { name: string; from: number; to: number }[] = [];
  const until = new Map<string, number>();
  for (const { name, time, status } of transitions) {
    const [rule = "", value = ""] = name.split("{");
    const { metric, by = "" } = metrics.get(rule) ?? {};
    if (metric !== base) continue;
    if (labels.includes(`${by}="`) && by !== "" && !labels.includes(value.replace("}", ""))) continue;
    if (status === "firing") periods.push({ name, from: time, to: until.get(name) ?? now });
    until.set(name, time);
  }
  return periods;
}

/** The periods in which alerts fired, by their changes, the newest first. */
export function firedIn(transitions: AlertsAnswer["transitions"], now: number) {
  const periods: { name: string; from: number; to: number }[] = [];
  const until = new Map<string, number>();
  for (const { name, time, status } of transitions) {
    if (status === "firing") periods.push({ name, from: time, to: until.get(name) ?? now });
    until.set(name, time);
  }
  return periods;
}

/** Where an alert is looked at: its chart, or the group of messages or exceptions that it found. */
export function placeOf(
  rule: Pick<AlertRule, "when" | "name">,
  name: string,
  window: Partial<State>,
  value: string | null = valueOf(name),
): { view: View; more: Partial<State> } {
  if (rule.when === "new_exception")
    return { view: "exceptions", more: { filter: value ?? "", order: "first", ...window } };
  if (rule.when === "new_pattern") return { view: "messages", more: { logger: value ?? "", ...window } };
  if (rule.when === "verdict") return { view: "overview", more: window };
  return { view: "alert", more: { name, ...window } };
}

/** The value of the label of an alert's name: `queue{shop="rome"}` has "rome". */
function valueOf(name: string): string | null {
  const text = name.slice(name.indexOf("=") + 1, -1);
  try {
    return name.includes("{") ? String(JSON.parse(text)) : null;
  } catch {
    return null;
  }
}

/** The window of a chart: half an hour before and after a moment, but no later than now. */
export function around(moment: number, now: number): { since: number; until: number } {
  const until = Math.min(Math.ceil(now), Math.ceil(moment) + 1800);
  return { since: Math.floor(moment) - 1800, until };
}
