// Replaces a view without data: its request was rejected, or is in flight.
import type { ComponentChildren } from "preact";
import type { Fed } from "../state/live";
import { T } from "./text";

interface Props<T> {
  fed: Fed<T>;
  children: (data: T) => ComponentChildren;
}

export function Gate<A>({ fed, children }: Props<A>) {
  const { data, failure, stale } = fed;
  const refused = failure !== null && !failure.passing;
  return (
    <>
      {refused && (
        <div class="refused" role="alert">
          <p>
            <strong>{data ? "Request rejected; showing earlier data." : "Request rejected."}</strong>{" "}
            <T text={failure.message} most={500} />
          </p>
          {failure.fix && (
            <p>
              <T text={failure.fix} most={500} />
            </p>
          )}
        </div>
      )}
      {data && (
        <div class={stale ? "view stale" : "view"} aria-busy={stale && !refused}>
          {children(data)}
        </div>
      )}
      {!data && !refused && <Waiting />}
    </>
  );
}

function Waiting() {
  return (
    <div class="waiting" aria-busy="true">
      <p class="away">Loading</p>
      <div />
      <div />
      <div />
    </div>
  );
}
