// Alerts: rules with their status, the newest changes, silences, and whether an evaluator is running.
import { address } from "../api/client";
import type { AlertsAnswer } from "../api/types";
import { command } from "../lib/command";
import { ago, momentOf } from "../lib/time";
import { Card } from "../parts/card";
import { Code, Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state, store } from "../state/page";
import { Changes } from "./alertchanges";
import { AlertRules } from "./alertrules";
import { span, summary, windowOf } from "./alertwords";

/** Milliseconds between two requests. */
const EVERY = 10_000;

const RUN = "redmeter alerts run --file alerts.toml";

export function Alerts() {
  const fed = useFeed<AlertsAnswer>(address("alerts"), EVERY);
  return (
    <>
      <Toolbar title="Alerts" ranged={false} />
      <Gate fed={fed}>
        {(answer) =>
          answer.rules.length === 0 && !answer.running ? (
            <Card title="Rules">
              <Empty title="No alert rules" code={command(RUN, store.value)}>
                Alerts are rules in a TOML file. An evaluator checks them every 15 seconds and publishes them
                here.
              </Empty>
            </Card>
          ) : (
            <>
              <Evaluator answer={answer} />
              <Card title="Rules" about={summary(answer)}>
                <AlertRules rules={answer.rules} now={answer.now} />
              </Card>
              <div class="panels even">
                <Changes {...answer} />
                <Muted answer={answer} />
              </div>
            </>
          )
        }
      </Gate>
    </>
  );
}

/** Whether an evaluator is running, and how to start one. */
function Evaluator({ answer }: { answer: AlertsAnswer }) {
  const { clock } = state.value;
  const { running, evaluated, interval, now } = answer;
  if (running)
    return (
      <p class="evaluator">
        <span class="dot ok" aria-hidden="true" /> Evaluator running
        {evaluated !== null && interval !== null && (
          <span class="faint">
            , last evaluation {ago(evaluated, now)}, every {span(interval)}
          </span>
        )}
      </p>
    );
  return (
    <div class="evaluator" role="status">
      <p>
        <span class="dot fail" aria-hidden="true" /> <b>No evaluator is running.</b> Nothing fires or resolves
        {evaluated !== null && <>; statuses are of {momentOf(evaluated, clock)}</>}. Start one:
      </p>
      <Code code={command(RUN, store.value)} />
    </div>
  );
}

/** Silences, maintenance windows, and notifications that were not delivered. */
function Muted({ answer }: { answer: AlertsAnswer }) {
  const { clock } = state.value;
  const { silences, maintenance, undelivered, troubles } = answer;
  const errors = Object.values(troubles).reduce((sum, count) => sum + count, 0);
  const none = silences.length + maintenance.length + undelivered.length + errors === 0;
  return (
    <Card title="Notifications" about="silences, maintenance windows, pending notifications">
      {none && <Empty title="No silences and no pending notifications" />}
      <ul class="alerts">
        {errors > 0 && (
          <li>
            <span class="what spiking">error</span>
            <div class="grow">
              <p>
                {errors} {errors === 1 ? "error" : "errors"} of the evaluator itself
              </p>
              <p class="message-about">
                <T text={answer.last_trouble} most={300} />
              </p>
            </div>
          </li>
        )}
        {undelivered.map((each) => (
          <li key={each.number}>
            <span class="what spiking">waiting</span>
            <div class="grow">
              <p>
                <T text={each.name} most={160} /> {each.status}, to <T text={each.notifier} most={60} />
              </p>
              <p class="message-about">
                {each.error ? <T text={each.error} most={300} /> : "not sent yet"}
                {each.attempts > 0 && `, ${each.attempts} attempts, since ${momentOf(each.time, clock)}`}
              </p>
            </div>
          </li>
        ))}
        {silences.map((each) => (
          <li key={each.id}>
            <span class="what gone">silence</span>
            <div class="grow">
              <p>
                <T text={each.alerts} most={160} />{" "}
                <span class="faint">until {momentOf(each.until, clock)}</span>
              </p>
              {each.comment && (
                <p class="message-about">
                  <T text={each.comment} most={200} />
                </p>
              )}
              <Code code={command(`redmeter alerts unsilence ${each.id}`, store.value)} />
            </div>
          </li>
        ))}
        {maintenance.map((each, i) => (
          <li key={`maintenance ${i}`}>
            <span class={`what ${each.active ? "new" : "gone"}`}>{each.active ? "now" : "window"}</span>
            <div class="grow">
              <p>
                <T text={each.alerts.join(", ")} most={160} /> <span class="faint">{windowOf(each)}</span>
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}
