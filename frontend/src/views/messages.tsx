// Messages of one logger or all: new, spiking and gone patterns, frequent ones, recent messages.
import { address } from "../api/client";
import type { MessagesAnswer } from "../api/types";
import { referenceOf } from "../lib/frame";
import { comparison, lastHour } from "../lib/hours";
import { plain } from "../lib/text";
import { momentOf, type Clock } from "../lib/time";
import { Card } from "../parts/card";
import { Gate } from "../parts/gate";
import { Filter } from "../parts/paging";
import { TimeBar } from "../parts/timebar";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { ERRORS, severitiesOf } from "../lib/severity";
import { Changed, Frequent, Recent } from "./messagelists";

type Window = Pick<MessagesAnswer, "since" | "until" | "counted_since">;

/** "vs the 20 min before", and the start of the counts if it is within that time. */
function windowOf({ since, until, counted_since: counted }: Window, clock: Clock): string {
  if (since === null || until === null) return "";
  const before = `vs ${referenceOf("", Math.round(until - since))}`;
  if (counted === null || counted <= since) return before;
  return `counts by pattern reach back to ${momentOf(counted, clock)}`;
}

/** The period that a window is compared with; "" if counts do not go back that far. */
function againstOf({ since, until, counted_since: counted }: Window): string | undefined {
  if (since === null || until === null) return undefined;
  return counted !== null && counted > since - (until - since)
    ? ""
    : referenceOf("", Math.round(until - since));
}

/** Milliseconds between two requests. */
const EVERY = 2000;
const SEVERITIES = [ERRORS, "critical", "error", "warning", "info", "debug"];

function Select({
  label,
  chosen,
  options,
  choose,
}: {
  label: string;
  chosen: string;
  options: string[];
  choose: (value: string) => void;
}) {
  const all = chosen && !options.includes(chosen) ? [chosen, ...options] : options;
  return (
    <label class="select">
      <span>{label}</span>
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">all</option>
        {all.map((each) => (
          <option key={each} value={each}>
            {each === ERRORS ? "critical and error" : plain(each, 60)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Messages() {
  const { logger, severity, filter, since, until } = state.value;
  const fed = useFeed<MessagesAnswer>(
    address("messages", { logger, severity: severitiesOf(severity), since, until, filter, limit: 100 }),
    since === null ? EVERY : 5 * EVERY,
  );
  const loggers = [...new Set(fed.data?.loggers.map((each) => each.logger) ?? [])].sort();
  const severities = [...new Set([...SEVERITIES, ...(fed.data?.loggers.map((each) => each.severity) ?? [])])];
  return (
    <>
      <Toolbar title="Messages" ranged={false}>
        {since === null && <span class="tag">last 60 min</span>}
      </Toolbar>
      <TimeBar />
      <div class="filters">
        <Filter label="Filter by text" most={200} />
        <Select
          label="Logger"
          chosen={logger}
          options={loggers}
          choose={(value) => set({ logger: value }, true)}
        />
        <Select
          label="Severity"
          chosen={severity}
          options={severities}
          choose={(value) => set({ severity: value }, true)}
        />
      </div>
      <Gate fed={fed}>
        {({ changes, frequent, recent, now, sources, compared, clock_hours, ...window }) => (
          <>
            <Card
              title={window.since === null ? "What changed" : "First seen in this window"}
              about={`${window.since === null ? comparison({ compared, clock_hours }) : ""}${compared < sources ? `; ${compared} of ${sources} loggers and severities compared` : ""}`}
            >
              <Changed changes={changes} now={now} windowed={window.since !== null} />
            </Card>
            <div class="panels even">
              <Card
                title="Frequent"
                about={
                  window.since === null
                    ? lastHour(clock_hours < compared || clock_hours === 0)
                    : windowOf(window, state.value.clock)
                }
              >
                <Frequent rows={frequent} now={now} against={againstOf(window)} />
              </Card>
              <Card
                title={window.since === null ? "Recent" : "Messages"}
                about={window.since === null ? "the newest that are kept" : "newest first"}
              >
                <Recent rows={recent} windowed={window.since !== null} />
              </Card>
            </div>
          </>
        )}
      </Gate>
    </>
  );
}
