// A sentence of an answer whose nouns are links: to a metric, a route, a mark.
import type { Part } from "../api/types";
import { Go } from "../parts/go";
import { spaced } from "../lib/units";
import { T } from "../parts/text";
import { set } from "../state/page";
import type { State } from "../state/url";

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

function Noun({ part, explain }: { part: Part; explain: (name: string) => Partial<State> | null }) {
  const { kind, text, name, label, value, time } = part;
  const shown = <T text={spaced(text)} most={200} />;
  if (kind === "group" && label === "route" && value !== null)
    return (
      <Go view="route" more={{ name: value }}>
        {shown}
      </Go>
    );
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
