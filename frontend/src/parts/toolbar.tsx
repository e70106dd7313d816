// Below the bar: the view's title, its range, and whether it is live.
import { hovering, kept, live, set, state } from "../state/page";
import { link } from "../state/live";
import { timeOf } from "../lib/time";
import { nearest } from "../lib/ranges";
import { Choice } from "./choice";
import { TimeBar } from "./timebar";
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
  const { now, late, failure } = link.value;
  const still = late || failure !== null;
  const chosen = nearest(all, range)?.precision ?? range;
  const options = all.map(({ precision, label, step }) => ({
    value: precision,
    text: label,
    title: `${label} by ${step}`,
  }));
  const current = all.find((each) => each.precision === chosen);
  return (
    <>
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
            choose={(precision) =>
              set({ range: precision, since: null, until: null, explain: "", offset: 0 }, true)
            }
          />
        )}
        <LiveButton />
        {now !== null && (
          <p class={still ? "as-of still" : "as-of"} title="Time of the displayed data, by the store's clock">
            {still && "as of "}
            {timeOf(now, clock)}
          </p>
        )}
      </div>
      {ranged && <TimeBar />}
    </>
  );
}

/** The button's state and its action: together its accessible name. */
function mode(): [looks: string, text: string, does: string] {
  const { failure, late } = link.value;
  if (state.value.paused) return ["paused", "Paused", "go live"];
  if (failure) return ["lost", failure.passing ? "Away" : "Refused", "pause"];
  if (late) return ["late", "Waiting", "pause"];
  if (hovering.value) return ["resting", "Paused", "while the mouse rests on a chart; press to stay so"];
  return ["on", "Live", "pause"];
}

function LiveButton() {
  const { paused } = state.value;
  const [looks, text, does] = mode();
  return (
    <button
      type="button"
      class={`live ${looks}`}
      aria-label={`${text}: ${does}`}
      onClick={() => set({ paused: !paused })}
      title={!paused && !live.value ? "Paused while the mouse rests on a chart" : undefined}
    >
      <span class="live-dot" aria-hidden="true" />
      {text}
    </button>
  );
}
