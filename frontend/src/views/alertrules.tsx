// Alert rules, firing ones first: status, value and limit, and how to silence them.
import type { AlertRule, AlertStatus } from "../api/types";
import { command, word } from "../lib/command";
import { momentOf } from "../lib/time";
import { number } from "../lib/units";
import { Code } from "../parts/empty";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { state, store } from "../state/page";
import { around, literal, placeOf, span } from "./alertwords";

export function AlertRules({ rules, now }: { rules: readonly AlertRule[]; now: number }) {
  return (
    <ul class="alerts">
      {rules.map((rule) => (
        <Rule rule={rule} now={now} key={rule.name} />
      ))}
    </ul>
  );
}

function Rule({ rule, now }: { rule: AlertRule; now: number }) {
  const quiet = rule.alerts.length === 0;
  return (
    <li>
      {quiet && <Status status={rule.unknown ? "unknown" : "ok"} />}
      {!quiet && <Status status={rule.status === "ok" && rule.unknown ? "unknown" : rule.status} />}
      <div class="grow">
        <p class="alert-name">
          <b>
            <T text={rule.name} most={120} />
          </b>{" "}
          {rule.severity && (
            <span class="tag">
              <T text={rule.severity} most={40} />
            </span>
          )}
        </p>
        <p class="message-about">
          {rule.condition ? (
            <>
              Fires if <T text={rule.condition} most={600} />.
            </>
          ) : (
            "No evaluator has published this rule."
          )}{" "}
          {rule.notify.length > 0 ? (
            <>
              Notifies <T text={rule.notify.join(", ")} most={120} />.
            </>
          ) : (
            rule.condition && "Sends no notifications."
          )}
        </p>
        {rule.alerts.map((alert) => (
          <One rule={rule} alert={alert} now={now} key={alert.name} />
        ))}
        {rule.by && (
          <p class="faint">
            <Others rule={rule} />
          </p>
        )}
        <Silence rule={rule} />
      </div>
    </li>
  );
}

/** The links of rules that compare no number. */
const CHARTS: Record<string, string> = {
  new_exception: "Exception",
  new_pattern: "Message",
  verdict: "Verdict",
};
const STATUSES = { firing: "spiking", pending: "new", ok: "gone", unknown: "gone" } as const;

function Status({ status }: { status: keyof typeof STATUSES }) {
  return <span class={`what ${STATUSES[status]}`}>{status}</span>;
}

/** One alert of a rule: its start, its value, and the chart of that time. */
function One({ rule, alert, now }: { rule: AlertRule; alert: AlertStatus; now: number }) {
  const { clock } = state.value;
  const { since, status, label_value: value } = alert;
  return (
    <p class="alert">
      {value !== null && (
        <>
          <b>
            <T text={`${rule.by}=${value}`} most={200} edges />
          </b>{" "}
        </>
      )}
      {status !== "ok" && since !== null && (
        <span title={momentOf(since, clock)}>
          {status} for {span(now - since)}
          {alert.detail && ": "}
        </span>
      )}
      {alert.detail && <T text={alert.detail} most={600} />}
      {status === "ok" && since !== null && <span class="faint"> (ok since {momentOf(since, clock)})</span>}
      {alert.unknown && (
        <span class="warn-text">
          {" "}
          Can't be evaluated: <T text={alert.unknown} most={300} />
        </span>
      )}{" "}
      {alert.silence && <span class="pill">silenced</span>}{" "}
      {alert.maintenance && <span class="pill">maintenance</span>}{" "}
      <Go
        {...placeOf(rule, alert.name, status !== "ok" && since !== null ? around(since, now) : {}, value)}
        label={`${CHARTS[rule.when] ?? "Chart"} of ${alert.name}`}
      >
        {CHARTS[rule.when] ?? "Chart"}
      </Go>
    </p>
  );
}

function Others({ rule }: { rule: AlertRule }) {
  const { by, ok, left_out: left, unknown } = rule;
  if (unknown)
    return (
      <span class="warn-text">
        Can't be evaluated: <T text={unknown} most={300} />
      </span>
    );
  return (
    <>
      {ok > 0 && `${number(ok)} ${ok === 1 ? "value" : "values"} of ${by} ok`}
      {left > 0 && (
        <span class="warn-text">
          {ok > 0 && ", "}
          {number(left)} beyond the limit not evaluated
        </span>
      )}
    </>
  );
}

/** The command that silences a rule, or those of its alerts that are not ok. */
function Silence({ rule }: { rule: AlertRule }) {
  const names = rule.by && rule.alerts.length > 0 ? rule.alerts.slice(0, 3).map((each) => each.name) : [];
  return (
    <details class="alert-silence">
      <summary>Silence</summary>
      {[...names, rule.name].map((name) => (
        <Code
          key={name}
          code={command(`redmeter alerts silence ${word(literal(name))} --for 2h`, store.value)}
        />
      ))}
      {rule.query && rule.query !== rule.condition && (
        <>
          <p class="faint">The condition as PromQL:</p>
          <Code code={rule.query} />
        </>
      )}
    </details>
  );
}
