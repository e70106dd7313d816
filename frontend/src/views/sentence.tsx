// A sentence of an answer whose nouns are links: to a metric, a route, a mark.
import type { Part } from "../api/types";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { set } from "../state/page";

export function Sentence({ parts }: { parts: readonly Part[] }) {
  return (
    <>
      {parts.map((part, i) => (
        <Noun part={part} key={i} />
      ))}
    </>
  );
}

function Noun({ part }: { part: Part }) {
  const { kind, text, name, label, value, time } = part;
  const shown = <T text={text} most={200} />;
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
  if (kind === "metric" && name)
    return (
      <Go view="series" more={{ name }}>
        {shown}
      </Go>
    );
  return kind === "value" ? <b>{shown}</b> : shown;
}
