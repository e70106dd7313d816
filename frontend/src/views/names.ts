// Kinds of series, and completion of their names: patterns, suggestions, and the name that an entry means.
import { address, ask } from "../api/client";
import type { NamesAnswer } from "../api/types";

/** Maximum number of suggestions per kind. */
const OFFERED = 30;
/** Maximum number of similar names. */
const SIMILAR = 12;

/** The kinds of series: their titles, and how a first series of each is recorded. */
export const KINDS = [
  { value: "counter", text: "Counters", code: 'count("signups")' },
  { value: "gauge", text: "Gauges", code: 'gauge("queue_length").set(7)' },
  { value: "histogram", text: "Histograms", code: 'observe("cart_value", 12.5)' },
] as const;
export type Kind = (typeof KINDS)[number]["value"];

/** A pattern that finds names containing the text, unless it is a pattern already. */
export function patternOf(text: string): string {
  return text === "" ? "*" : isPattern(text) ? text : `*${text}*`;
}

/** Whether a text contains wildcards. */
export function isPattern(text: string): boolean {
  return /[*?[\]]/.test(text);
}

/** A name without its labels, for all label sets. */
export function familyOf(name: string): string {
  return name.replace(/\{.*$/s, "");
}

/** Suggestions: some of each kind; a name before its label sets. */
export function offered(kinds: readonly (readonly string[])[]): string[] {
  const all = kinds.flatMap((names) => names.flatMap((name) => [familyOf(name), name]));
  return [...new Set(all)].filter(Boolean).slice(0, kinds.length * OFFERED);
}

/** Names of every kind that a pattern finds. */
export async function namesOf(pattern: string, signal: AbortSignal): Promise<string[]> {
  const answers = await Promise.all(
    KINDS.map(({ value: kind }) =>
      ask<NamesAnswer>(address("names", { pattern, kind, limit: OFFERED }), null, signal),
    ),
  );
  return offered(answers.map((each) => each.data?.names ?? []));
}

/** Gauges with one of these names, with any labels; without names, some of all gauges. */
export async function gaugesOf(names: readonly string[], signal: AbortSignal): Promise<string[]> {
  const patterns =
    names.length === 0 ? ["*"] : names.filter((name) => !isPattern(name) && !name.includes("{"));
  const answers = await Promise.all(
    patterns.map((name) =>
      ask<NamesAnswer>(
        address("names", { pattern: name === "*" ? name : `${name}{*`, kind: "gauge", limit: SIMILAR }),
        null,
        signal,
      ),
    ),
  );
  return answers.flatMap((each) => each.data?.names ?? []).slice(0, SIMILAR);
}

/** The name that an entry means: itself, or its only suggestion; null if there is none or several. */
export function meant(text: string, names: readonly string[]): string | null {
  if (names.includes(text)) return text;
  const families = new Set(names.map(familyOf));
  return text !== "" && families.size === 1 ? ([...families][0] ?? null) : null;
}

/** Names similar to one that does not exist: those that contain it, or else share its beginning. */
export async function similar(name: string, signal: AbortSignal): Promise<string[]> {
  const base = familyOf(name).replace(/[*?[\]\\]/g, "");
  for (const pattern of [`*${base}*`, `${base.slice(0, Math.ceil(base.length / 2))}*`]) {
    const matches = base ? await namesOf(pattern, signal) : [];
    const others = matches.filter((each) => each !== name);
    if (others.length > 0) return others.slice(0, SIMILAR);
  }
  return [];
}

/** The names that an error message contains; all if it contains none. */
export function refusedOf(names: readonly string[], message: string): string[] {
  const refused = names.filter((name) => message.includes(name.slice(0, 40)));
  return refused.length > 0 ? refused : [...names];
}
