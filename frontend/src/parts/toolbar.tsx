// Below the bar: what is looked at, over which range, and whether it is live.
import { hovering, kept, live, set, state } from "../state/page";
import { link } from "../state/live";
import { timeOf } from "../lib/time";
import { nearest } from "../lib/ranges";
import { Choice } from "./choice";
import type { ComponentChildren } from "preact";

export function Toolbar({
  title,
  ranged,
  children,
}: {
  title: ComponentChildren;
  ranged: boolean;
  children?: ComponentChildren;
}) {
  const { range, clock } = state.value;
  const all = kept.value;
  const chosen = nearest(all, range)?.precision ?? range;
  const options = all.map(({ precision, label, step }) => ({
    value: precision,
    text: label,
    title: `${label} by ${step}`,
  }));
  const current = all.find((each) => each.precision === chosen);
  return (
    <div class="toolbar">
      <div class="toolbar-title">
        <h1 tabIndex={-1}>{title}</h1>
        {children}
        {ranged && current && (
          <p class="about">
            by {current.step}
            {chosen >= 86_400 ? ", days of UTC" : ""}
          </p>
        )}
      </div>
      {ranged && options.length > 0 && (
        <Choice
          label="Range"
          options={options}
          chosen={chosen}
          choose={(precision) => set({ range: precision, since: null, until: null, offset: 0 }, true)}
        />
      )}
      <LiveButton />
      {link.value.now !== null && (
        <p class="as-of" title="The store's clock, when this was so">
          {timeOf(link.value.now, clock)}
        </p>
      )}
    </div>
  );
}

function LiveButton() {
  const { paused } = state.value;
  const away = link.value.failure?.passing ?? false;
  const [mode, text] = paused
    ? ["paused", "Paused"]
    : away
      ? ["lost", "Away"]
      : hovering.value
        ? ["resting", "Paused"]
        : ["on", "Live"];
  return (
    <button
      type="button"
      class={`live ${mode}`}
      aria-pressed={!paused}
      aria-label={paused ? "Paused: go live" : "Live: pause"}
      onClick={() => set({ paused: !paused })}
      title={!paused && !live.value ? "Paused while the mouse rests on a chart" : undefined}
    >
      <span class="live-dot" aria-hidden="true" />
      {text}
    </button>
  );
}
