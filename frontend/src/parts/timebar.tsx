// Controls for the time window: earlier, later, a date, zoom out, now; and the compared period.
import { comparedText, lacking, referenceOf, SHIFTS, stepped, widened, type Period } from "../lib/frame";
import { command } from "../lib/command";
import { durationLabel, finest } from "../lib/ranges";
import { fieldOf, momentOf, momentOfField } from "../lib/time";
import { kept, set, state, store, zoom } from "../state/page";
import { link } from "../state/live";
import { AGAINST, type Against } from "../state/url";
import { Share } from "./sharemenu";

/** The window in view: that of the last answer, else the zoom or the newest samples of the range. */
export function inView(): Period | null {
  const { window, now } = link.value;
  if (window) return { from: window.start, to: window.end };
  const { since, until, range, last } = state.value;
  if (since !== null && until !== null) return { from: since, to: until };
  const span = last ?? kept.value.find((each) => each.precision === range)?.span;
  return now === null || !span ? null : { from: Math.ceil(now) - span, to: Math.ceil(now) };
}

/** The range for endpoints whose windows have no length of their own: whole steps of exceptions. */
export function sinceUntil() {
  const { since, until } = state.value;
  const period = inView();
  if (since !== null || !period) return { since, until };
  return { since: Math.floor(period.from / STEP) * STEP, until };
}

/** Width of the finest intervals of exceptions, seconds. */
const STEP = 300;

/** Show a window; one that ends in the future is moved to the present. */
export function show({ from, to }: Period): void {
  const now = link.peek().now ?? to;
  const late = Math.max(0, Math.ceil(to - now));
  zoom({ from: from - late, to: to - late });
}

const back = () => zoom(null, { explain: "" });

/** Steps back other than half a window, seconds. */
const JUMPS = [
  { text: "−1 d", title: "A day earlier", by: 86_400 },
  { text: "−7 d", title: "A week earlier", by: 604_800 },
];

export function TimeBar() {
  const { since, until, range, clock, view } = state.value;
  const period = inView();
  const { now, window } = link.value;
  if (!period) return null;
  const zoomed = since !== null && until !== null;
  const { from, to } = period;
  const better = zoomed && now !== null ? finest(kept.value, since + 1, now) : undefined;
  const chosen = kept.value.find((each) => each.precision === range);
  const oldest = (now ?? 0) - Math.max(0, ...kept.value.map((each) => each.span));
  return (
    <div class="timebar" role="group" aria-label="Time">
      <button
        type="button"
        class="quiet icon"
        aria-label="Earlier"
        title="Earlier"
        onClick={() => show(stepped(period, -1))}
      >
        ‹
      </button>
      <button
        type="button"
        class="quiet icon"
        aria-label="Later"
        title="Later"
        disabled={!zoomed || (now !== null && until >= now)}
        onClick={() => show(stepped(period, 1))}
      >
        ›
      </button>
      {JUMPS.map(({ text, title, by }) => (
        <button
          type="button"
          class="quiet"
          key={by}
          title={title}
          onClick={() => show({ from: from - by, to: to - by })}
        >
          {text}
        </button>
      ))}
      <input
        type="datetime-local"
        aria-label="Start of the window"
        title="Start of the window"
        value={fieldOf(from, clock)}
        onChange={({ currentTarget: { value } }) => {
          const at = momentOfField(value, clock);
          if (at !== null) show({ from: at, to: at + to - from });
        }}
      />
      {zoomed && (
        <>
          <span class="timebar-text">
            {momentOf(from, clock)} to {momentOf(to, clock)}
            <span class="faint">
              {" "}
              {durationLabel(to - from)}
              {window && ` by ${durationLabel(window.precision)}`}
              {window &&
                chosen &&
                window.precision !== chosen.precision &&
                ` (${chosen.step} is kept for ${chosen.label})`}
              {kept.value.length > 0 && to <= oldest && `: nothing is kept before ${momentOf(oldest, clock)}`}
            </span>
          </span>
          {better && window && better.precision < window.precision && (
            <button type="button" class="quiet" onClick={() => set({ range: better.precision }, true)}>
              Show by {better.step}
            </button>
          )}
          <button type="button" class="quiet" onClick={() => show(widened(period))}>
            Zoom out
          </button>
          {view === "overview" && (
            <button type="button" class="quiet" onClick={() => set({ explain: "hits", mark: null }, true)}>
              Explain
            </button>
          )}
          <button type="button" class="quiet" onClick={back} title="Escape">
            Now
          </button>
        </>
      )}
      {window && <Compared period={period} />}
      {view !== "messages" && <Share period={period} />}
    </div>
  );
}

/** The choice of the compared period. One that is not kept is explained. */
function Compared({ period }: { period: Period }) {
  const { against, clock } = state.value;
  const { window, now } = link.value;
  if (!window || now === null) return null;
  const lacks = (each: Against) =>
    each === "" ? null : lacking(kept.value, period, window.precision, now, SHIFTS[each]);
  const missing = window.before ? null : lacks(against);
  const words = referenceOf(against, period.to - period.from);
  const text = comparedText(window, against, clock);
  const width = window.before_precision ?? window.precision;
  return (
    <>
      <label class="select">
        <span>Compare with</span>
        <select
          value={against}
          onChange={(event) => set({ against: event.currentTarget.value as Against }, true)}
        >
          {AGAINST.map((each) => (
            <option key={each} value={each} disabled={each !== against && lacks(each) !== null}>
              {referenceOf(each, period.to - period.from)}
              {lacks(each) && `: not kept by ${durationLabel(window.precision)}`}
            </option>
          ))}
        </select>
      </label>
      {(text !== words || width !== window.precision) && (
        <span class="faint">
          {text}, by {durationLabel(width)}
        </span>
      )}
      {missing && missing.samples <= MOST_SAMPLES && (
        <span class="faint">
          To compare from then on:{" "}
          <code>{command(`redmeter retention ${missing.precision}=${missing.samples}`, store.value)}</code>
        </span>
      )}
    </>
  );
}

/** Maximum number of samples that a precision can keep. */
const MOST_SAMPLES = 254;
