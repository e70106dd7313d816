// Says that the store or the server is away, since when what is shown stands still, and tries again.
// Where a part of the store is away, it says what is missing.
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
    announce("The store is away. What is shown stands still.");
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => {
      clearInterval(timer);
      announce("The store is back.");
    };
  }, [away]);
  const lacking = missing.join("; ");
  useEffect(() => {
    if (!lacking) return;
    announce(`${lacking}. What lies there is missing.`);
    return () => announce("Nothing is missing any more.");
  }, [lacking]);
  if (!away && lacking)
    return (
      <div class="banner">
        <p>
          <strong>A part of the store is away.</strong> <T text={lacking} most={300} />: what lies there is
          missing.
        </p>
      </div>
    );
  if (!away) return null;
  const wait = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  return (
    <div class="banner" role="alert">
      <p>
        <strong>{failure.status === 0 ? "The server is away." : "The store is away."}</strong>{" "}
        <T text={failure.message} most={300} /> {failure.fix && <T text={failure.fix} most={300} />}{" "}
        {now !== null && <span>What is shown was so at {timeOf(now, state.value.clock)}.</span>}
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
