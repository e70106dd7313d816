// The newest changes of alerts, each with a link to the chart of that time.
import type { AlertRule, AlertsAnswer } from "../api/types";
import { momentOf } from "../lib/time";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { state } from "../state/page";
import { around, placeOf } from "./alertwords";

interface Props {
  transitions: AlertsAnswer["transitions"];
  rules: readonly AlertRule[];
  now: number;
}

export function Changes({ transitions, rules, now }: Props) {
  const { clock } = state.value;
  const known = new Map(rules.map((rule) => [rule.name, rule]));
  return (
    <Card title="Latest changes">
      {transitions.length === 0 ? (
        <Empty title="No alert has fired yet" />
      ) : (
        <ul class="alerts">
          {transitions.map((each) => {
            const rule = known.get(each.name.split("{")[0] ?? "");
            const place = rule && placeOf(rule, each.name, around(each.time, now));
            return (
              <li key={`${each.time} ${each.name} ${each.status}`}>
                <span class={`what ${each.status === "firing" ? "spiking" : "gone"}`}>{each.status}</span>
                <div class="grow">
                  <p>
                    {place ? (
                      <Go view={place.view} more={place.more}>
                        <T text={each.name} most={160} />
                      </Go>
                    ) : (
                      <T text={each.name} most={160} />
                    )}{" "}
                    <span class="faint">{momentOf(each.time, clock)}</span>
                  </p>
                  {each.detail && (
                    <p class="message-about">
                      <T text={each.detail} most={300} />
                    </p>
                  )}
                </div>
              </li>
            );
          })}
        </ul>
      )}
    </Card>
  );
}
