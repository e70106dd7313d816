// Lists of messages: changed patterns, frequent patterns, recent messages.
import type { ChangeRow, FrequencyRow, Message } from "../api/types";
import { hourBefore } from "../lib/hours";
import { ago, momentOf } from "../lib/time";
import { number } from "../lib/units";
import { Empty } from "../parts/empty";
import { follow, Go } from "../parts/go";
import { Pill } from "../parts/pill";
import { T } from "../parts/text";
import { state } from "../state/page";
import { roughly } from "./tiles";

const INSTALL =
  "from redmeter import Meter; from redmeter.integrations.logging import install; install(Meter())";

export function Severity({ severity }: { severity: string }) {
  const known = /^(debug|info|warning|error|critical)$/.test(severity) ? severity : "other";
  return (
    <span class={`severity ${known}`}>
      <T text={severity} most={30} />
    </span>
  );
}

/** Replaces an empty list of messages. */
function NoMessages({ windowed = false }: { windowed?: boolean }) {
  if (windowed)
    return (
      <Empty title="No messages in this window">
        Redmeter keeps the newest messages of each logger, and counts by pattern for two hours.
      </Empty>
    );
  return (
    <Empty title="No messages in the last two hours" code={INSTALL}>
      Redmeter groups the messages that your application already logs by pattern.
    </Empty>
  );
}

function About({ row, now }: { row: FrequencyRow; now: number }) {
  const { clock } = state.value;
  return (
    <p class="message-about">
      <Severity severity={row.severity} /> <T text={row.logger} most={60} />
      {row.last !== null && <span title={momentOf(row.last, clock)}> · {ago(row.last, now)}</span>}
    </p>
  );
}

/** Maximum number of variants that are listed. */
const MOST_VARIANTS = 20;

/** The stored patterns of a merged one. */
function Variants({ row }: { row: FrequencyRow }) {
  const { variants } = row;
  if (variants.length === 0) return null;
  const more = variants.length - MOST_VARIANTS;
  return (
    <details>
      <summary>{number(variants.length)} variants</summary>
      <pre tabIndex={0}>
        <T text={variants.slice(0, MOST_VARIANTS).join("\n")} lines most={MOST_VARIANTS * 300} />
        {more > 0 && `\n… ${number(more)} more`}
      </pre>
    </details>
  );
}

function Before({ row }: { row: FrequencyRow }) {
  return (
    <span
      class="faint"
      title={`${number(row.before)} in ${row.sliding ? "the 60 minutes before" : "the whole clock hour before"}`}
    >
      {" "}
      was {roughly(row.expected)}
    </span>
  );
}

export function Changed({
  changes,
  now,
  brief = false,
  windowed = false,
}: {
  changes: readonly ChangeRow[];
  now: number;
  brief?: boolean;
  /** Whether a window is shown: then changes are patterns first seen in it. */
  windowed?: boolean;
}) {
  if (changes.length === 0 && windowed)
    return <Empty title="No new pattern in this window">All patterns were seen before.</Empty>;
  if (changes.length === 0)
    return <Empty title="Nothing new, spiking or gone">The last hour is like the hour before.</Empty>;
  return (
    <ul class="messages">
      {changes.map((row) => (
        <li key={`${row.kind} ${row.logger} ${row.severity} ${row.pattern}`} class="to-row" onClick={follow}>
          <span class={`what ${row.kind}`}>{row.kind}</span>
          <div class="grow">
            <p class="pattern">
              <Go view="messages" more={{ logger: row.logger, severity: row.severity }}>
                <T text={row.pattern} most={brief ? 160 : 1000} />
              </Go>
            </p>
            <About row={row} now={now} />
            {!brief && <Variants row={row} />}
          </div>
          <p class="message-count">
            <b>{number(row.count)}</b>
            {!windowed && <Before row={row} />}
          </p>
        </li>
      ))}
    </ul>
  );
}

export function Frequent({
  rows,
  now,
  brief = false,
  against,
}: {
  rows: readonly FrequencyRow[];
  now: number;
  brief?: boolean;
  /** Of a window: the time before it; "" if that is not kept. */
  against?: string | undefined;
}) {
  if (rows.length === 0) return <NoMessages windowed={against !== undefined} />;
  return (
    <ul class="messages">
      {rows.map((row) => (
        <li key={`${row.logger} ${row.severity} ${row.pattern}`}>
          <div class="grow">
            <p class="pattern">
              <T text={row.pattern} most={brief ? 160 : 1000} />
            </p>
            <About row={row} now={now} />
            {!brief && <Variants row={row} />}
            {!brief && row.sample && row.sample !== row.pattern && (
              <details>
                <summary>Latest example</summary>
                <pre tabIndex={0}>
                  <T text={row.sample} lines />
                </pre>
              </details>
            )}
          </div>
          <p class="message-count">
            <b>{number(row.count)}</b>{" "}
            {brief ? (
              <Before row={row} />
            ) : (
              against !== "" && (
                <Pill
                  value={row.count}
                  before={against === undefined ? row.expected : row.before}
                  meaning="neutral"
                  against={against ?? hourBefore(row.sliding)}
                />
              )
            )}
          </p>
        </li>
      ))}
    </ul>
  );
}

export function Recent({ rows, windowed = false }: { rows: readonly Message[]; windowed?: boolean }) {
  if (rows.length === 0) return <NoMessages windowed={windowed} />;
  const { clock } = state.value;
  return (
    <ol class="recent" tabIndex={0} aria-label="Recent messages">
      {rows.map((row, i) => (
        <li key={`${row.time} ${i}`}>
          <time>{row.time === null ? "–" : momentOf(row.time, clock)}</time>
          <Severity severity={row.severity} />
          <span class="faint logger">
            <T text={row.logger} most={60} />
          </span>
          <pre tabIndex={0}>
            <T text={row.text} lines />
          </pre>
        </li>
      ))}
    </ol>
  );
}
