// Below the bar: the view's title, its range, and whether it is live.
import { hovering, kept, live, set, state, zoom } from "../state/page";
import { link } from "../state/live";
import { timeOf } from "../lib/time";
import { presets } from "../lib/frame";
import { durationLabel } from "../lib/ranges";
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
  const { range, last, since, clock } = state.value;
  const all = presets(kept.value);
  const { now, late, failure } = link.value;
  const still = late || failure !== null;
  const options = all.map(({ span, label, step }) => ({
    value: span,
    text: label,
    title: `${label} by ${step}`,
  }));
  const chosen = all.find((each) => each.precision === range && each.last === last);
  const shown = link.value.window?.precision ?? chosen?.precision;
  return (
    <>
      <div class="toolbar">
        <div class="toolbar-title">
          <h1 tabIndex={-1}>{title}</h1>
          {children}
          {ranged && shown !== undefined && (
            <p class="about">
              by {durationLabel(shown)}
              {shown >= 86_400 ? ", days of UTC" : ""}
            </p>
          )}
        </div>
        {ranged && options.length > 0 && (
          <Choice
            label="Range"
            options={options}
            chosen={since === null ? (chosen?.span ?? 0) : 0}
            choose={(span) => {
              const { precision, last } = all.find((each) => each.span === span) ?? {
                precision: range,
                last: null,
              };
              zoom(null, { range: precision, last, explain: "" });
            }}
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
