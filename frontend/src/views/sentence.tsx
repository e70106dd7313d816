// A sentence of an answer whose nouns are links: to a metric, a route, a mark.
import type { Part } from "../api/types";
import { Go } from "../parts/go";
import { spaced } from "../lib/units";
import { T } from "../parts/text";
import { minuteOf } from "../lib/time";
import { set, state } from "../state/page";
import type { State, View } from "../state/url";

interface Props {
  parts: readonly Part[];
  /** The state that explains a metric; without one, it leads to its page. */
  explain?: (name: string) => Partial<State> | null;
}

export function Sentence({ parts, explain }: Props) {
  return (
    <>
      {parts.map((part, i) => (
        <Noun part={part} key={i} explain={explain ?? none} />
      ))}
    </>
  );
}

const none = () => null;

/** The page of a noun; null if it has none of its own. */
function placeOf({ kind, name, label, value }: Part): { view: View; more: Partial<State> } | null {
  if (kind === "group" && (label === "route" || label === "task") && value !== null)
    return { view: label, more: { name: value } };
  if (kind === "exception" && name) return { view: "exception", more: { name } };
  if (kind === "messages") return { view: "messages", more: { logger: name ?? "", severity: label ?? "" } };
  return kind === "alert" ? { view: "alerts", more: {} } : null;
}

function Noun({ part, explain }: { part: Part; explain: (name: string) => Partial<State> | null }) {
  const { kind, text, name, time } = part;
  const shown = <T text={spaced(text)} most={200} />;
  const to = placeOf(part);
  if (to)
    return (
      <Go view={to.view} more={to.more}>
        {shown}
      </Go>
    );
  if (kind === "time" && time !== null && /^\d\d:\d\d$/.test(text)) return minuteOf(time, state.value.clock);
  if (kind === "mark" && time !== null)
    return (
      <button type="button" class="noun" onClick={() => set({ mark: Math.floor(time), explain: "" }, true)}>
        {shown}
      </button>
    );
  if (kind === "metric" && name) {
    const explained = explain(name);
    return (
      <Go view={explained ? "overview" : "series"} more={explained ?? { name }}>
        {shown}
      </Go>
    );
  }
  return kind === "value" ? <b>{shown}</b> : shown;
}
