// Messages: new, spiking, gone; frequent; recent. Of all loggers, or of one.
import { address } from "../api/client";
import type { MessagesAnswer } from "../api/types";
import { comparison, lastHour } from "../lib/hours";
import { plain } from "../lib/text";
import { Card } from "../parts/card";
import { Gate } from "../parts/gate";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { set, state } from "../state/page";
import { ERRORS, severitiesOf } from "../lib/severity";
import { Changed, Frequent, Recent } from "./messagelists";

/** Milliseconds between two questions. */
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
  const { logger, severity } = state.value;
  const fed = useFeed<MessagesAnswer>(
    address("messages", { logger, severity: severitiesOf(severity), limit: 100 }),
    EVERY,
  );
  const loggers = [...new Set(fed.data?.loggers.map((each) => each.logger) ?? [])].sort();
  const severities = [...new Set([...SEVERITIES, ...(fed.data?.loggers.map((each) => each.severity) ?? [])])];
  return (
    <>
      <Toolbar title="Messages" ranged={false} />
      <div class="filters">
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
        {({ changes, frequent, recent, now, sources, compared, clock_hours }) => (
          <>
            <Card
              title="What changed"
              about={`${comparison({ compared, clock_hours })}${compared < sources ? `; ${compared} of ${sources} loggers and severities compared` : ""}`}
            >
              <Changed changes={changes} now={now} />
            </Card>
            <div class="panels even">
              <Card title="Frequent" about={lastHour(clock_hours < compared || clock_hours === 0)}>
                <Frequent rows={frequent} now={now} />
              </Card>
              <Card title="Recent" about="the newest first">
                <Recent rows={recent} />
              </Card>
            </div>
          </>
        )}
      </Gate>
    </>
  );
}
