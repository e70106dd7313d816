// Response times and durations are kept at other precisions than counts: where theirs is another time, it is named.
import type { Span } from "../api/types";
import { timedText } from "../lib/frame";
import { link } from "../state/live";
import { state } from "../state/page";

/** `what`: the columns that it is about, as the beginning of a sentence. */
export function Timed({ window, what }: { window: Span; what: string }) {
  const text = timedText(window, state.value.clock, link.value.now ?? 0);
  return text ? (
    <p class="fine">
      {what} {text}: the histograms of that time are not kept any finer.
    </p>
  ) : null;
}
