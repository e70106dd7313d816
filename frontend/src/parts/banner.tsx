// Reports that the store or the server is unreachable, and since when the data is old; retries.
// If a part of the store is unreachable, it names the missing part.
import { useEffect, useState } from "preact/hooks";
import { timeOf } from "../lib/time";
import { announce } from "../state/announce";
import { link } from "../state/live";
import { state } from "../state/page";
import { T } from "./text";

export function Banner() {
  const { failure, retryAt, now, missing, again } = link.value;
  const [, tick] = useState(0);
  const away = failure !== null && failure.passing;
  useEffect(() => {
    if (!away) return;
    announce("Can't reach the store. The page shows old data.");
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => {
      clearInterval(timer);
      announce("The store is reachable again.");
    };
  }, [away]);
  const lacking = missing.join("; ");
  useEffect(() => {
    if (!lacking) return;
    announce(`${lacking}. Its data is missing.`);
    return () => announce("Everything is reachable again.");
  }, [lacking]);
  if (!away && lacking)
    return (
      <div class="banner">
        <p>
          <strong>Part of the store is unreachable.</strong> <T text={lacking} most={300} />. Its data is
          missing here.
        </p>
      </div>
    );
  if (!away) return null;
  // It is retried, as the next sentence says.
  const text = failure.fix && !failure.passing ? `${failure.message}; ${failure.fix}` : failure.message;
  const wait = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  return (
    <div class="banner" role="alert">
      <p>
        <strong>{failure.status === 0 ? "Can't reach the server." : "Can't reach the store."}</strong>{" "}
        <T text={/[.?]$/.test(text) ? text : `${text}.`} most={600} />{" "}
        {now !== null && <span>Retrying. Showing data from {timeOf(now, state.value.clock)}.</span>}
      </p>
      <button type="button" class="quiet" onClick={again}>
        Try now
        <span class="countdown" aria-hidden="true">
          {wait > 0 ? `(${wait} s)` : "…"}
        </span>
      </button>
    </div>
  );
}
