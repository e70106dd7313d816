// The share menu: a link to this window, the values of its charts, a picture.
import { useState } from "preact/hooks";
import { csvOf, pictureOf, shared } from "../chart/share";
import type { Period } from "../lib/frame";
import { momentOf } from "../lib/time";
import { shortName } from "../lib/store";
import { state, store } from "../state/page";
import { ABOUT } from "../state/views";
import { serialise } from "../state/url";

function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Share({ period }: { period: Period }) {
  const [message, setMessage] = useState("");
  const { view, name, clock } = state.value;
  const title = name || ABOUT[view].title;
  const file = `redmeter-${title.replace(/[^\w-]+/g, "_").slice(0, 60)}`;
  const query = serialise({ ...state.value, since: period.from, until: period.to, paused: true });
  const copy = async () => {
    const address = new URL(query, location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      setMessage("Copied");
    } catch {
      setMessage(address);
    }
  };
  const picture = () => {
    const zone = clock === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
    const of = store.value ? `, ${shortName(store.value.location, store.value.prefix)}` : "";
    const range = `${momentOf(period.from, clock)} to ${momentOf(period.to, clock)} ${zone}${of}`;
    pictureOf(title, range)?.toBlob((blob) => blob && save(`${file}.png`, blob));
  };
  return (
    <details class="menu" onToggle={() => setMessage("")}>
      <summary class="quiet">Share</summary>
      <div class="menu-body">
        <button type="button" class="quiet" onClick={() => void copy()}>
          Copy link to this view
        </button>
        {shared.value && (
          <>
            <button
              type="button"
              class="quiet"
              onClick={() => save(`${file}.csv`, new Blob([csvOf(period)], { type: "text/csv" }))}
            >
              Values as CSV
            </button>
            <button type="button" class="quiet" onClick={picture}>
              Charts as PNG
            </button>
          </>
        )}
        <p class="fine" role="status">
          {message}
        </p>
      </div>
    </details>
  );
}
