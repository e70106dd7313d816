// Log patterns that are new, and those that are gone.

import { number } from "../lib/units";
import { T } from "../parts/text";
import { Severity } from "./messagelists";

interface Pattern {
  logger: string;
  severity: string;
  pattern: string;
  count: number | null;
}

/** Maximum number of patterns per list. */
const MOST = 8;

interface Props {
  new: readonly Pattern[];
  vanished: readonly Pattern[];
  /** The reason why they were not compared. */
  reason?: string;
}

export function Patterns(props: Props) {
  const rows = [
    ...props.new.slice(0, MOST).map((row) => ({ ...row, what: "new" })),
    ...props.vanished.slice(0, MOST).map((row) => ({ ...row, what: "gone" })),
  ];
  if (props.reason)
    return (
      <p class="fine">
        Log messages: <T text={props.reason} most={300} />
      </p>
    );
  if (rows.length === 0) return <p class="fine">No log message is new or gone.</p>;
  return (
    <ul class="messages">
      {rows.map((row) => (
        <li key={`${row.what} ${row.logger} ${row.severity} ${row.pattern}`}>
          <span class={`what ${row.what}`}>{row.what}</span>
          <div class="grow">
            <p class="pattern">
              <T text={row.pattern} most={300} />
            </p>
            <p class="message-about">
              <Severity severity={row.severity} /> <T text={row.logger} most={60} />
            </p>
          </div>
          {row.count !== null && (
            <p class="message-count">
              <b>{number(row.count)}</b>
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}
