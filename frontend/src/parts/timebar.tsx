// Controls for the time window: earlier, later, zoom out, now; and the compared period.
import { referenceOf, reaching, stepped, widened, type Period } from "../lib/frame";
import { durationLabel, finest } from "../lib/ranges";
import { momentOf } from "../lib/time";
import { kept, set, state } from "../state/page";
import { link } from "../state/live";
import { AGAINST, type Against } from "../state/url";
import { Share } from "./sharemenu";

/** The window in view: the zoom, or the newest samples of the range. */
export function inView(): Period | null {
  const { since, until, range } = state.value;
  if (since !== null && until !== null) return { from: since, to: until };
  const now = link.value.now;
  const at = kept.value.find((each) => each.precision === range);
  return now === null || !at ? null : { from: Math.ceil(now) - at.span, to: Math.ceil(now) };
}

/** Show a window; one that ends in the future is moved to the present. */
export function show({ from, to }: Period): void {
  const now = link.peek().now ?? to;
  const late = Math.max(0, Math.ceil(to - now));
  set({ since: Math.max(0, from - late), until: to - late, offset: 0 }, true);
}

const back = () => set({ since: null, until: null, explain: "", offset: 0 }, true);

export function TimeBar() {
  const { since, until, range, clock, against, view } = state.value;
  const period = inView();
  const now = link.value.now;
  if (!period) return null;
  const zoomed = since !== null && until !== null;
  const length = period.to - period.from;
  const shown = zoomed && now !== null ? reaching(kept.value, range, since, now) : undefined;
  const better = zoomed && now !== null ? finest(kept.value, since + 1, now) : undefined;
  const chosen = kept.value.find((each) => each.precision === range);
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
      {zoomed && (
        <>
          <span class="timebar-text">
            {momentOf(since, clock)} to {momentOf(until, clock)}
            <span class="faint">
              {" "}
              {durationLabel(length)}
              {shown && ` by ${shown.step}`}
              {shown && chosen && shown !== chosen && ` (${chosen.step} is kept for ${chosen.label})`}
            </span>
          </span>
          {better && shown && better.precision < shown.precision && (
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
      {view !== "messages" && view !== "exceptions" && (
        <label class="select">
          <span>Compare with</span>
          <select
            value={against}
            onChange={(event) => set({ against: event.currentTarget.value as Against }, true)}
          >
            {AGAINST.map((each) => (
              <option key={each} value={each}>
                {referenceOf(each, length)}
              </option>
            ))}
          </select>
        </label>
      )}
      {view !== "messages" && <Share period={period} />}
    </div>
  );
}
