// The page of one alert: what its rule compares with its limit, over time, and when it fired.
import { address } from "../api/client";
import type { AlertAnswer, AlertRule } from "../api/types";
import { ChartGroup } from "../chart/group";
import type { Line } from "../chart/lines";
import { pollEvery } from "../lib/ranges";
import { number, value, type Unit } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state } from "../state/page";
import { Changes } from "./alertchanges";
import { AlertRules } from "./alertrules";
import { firedIn } from "./alertwords";

/** The lines of the chart: what is compared, and the limit. */
export function alertLines({ rule, lines, window, now }: AlertAnswer): Line[] {
  if (!rule) return [];
  const unit = rule.unit as Unit;
  const line = (label: string, values: readonly (number | null)[], partial = window.end > now): Line => ({
    key: label,
    label,
    unit,
    kind: "gauge",
    sums: false,
    precision: window.precision,
    start: window.start,
    values,
    partial,
  });
  const drawn = lines.map((each) => line(each.label_value ?? rule.name, each.values));
  const longest = Math.max(0, ...lines.map((each) => each.values.length));
  if (rule.limit === null || longest === 0) return drawn;
  const limit = rule.limit;
  return [...drawn, line(`limit ${value(limit, unit)}`, new Array<number>(longest).fill(limit), false)];
}

export function AlertPage() {
  const { range, name, since, until } = state.value;
  const fed = useFeed<AlertAnswer>(
    address("alert", { name, precision: range, since, until }),
    pollEvery(range),
  );
  return (
    <>
      <Toolbar title={<T text={name} most={200} />} ranged>
        <span class="tag">alert</span>
      </Toolbar>
      <Gate fed={fed}>{(answer) => <Shown answer={answer} />}</Gate>
    </>
  );
}

function Shown({ answer }: { answer: AlertAnswer }) {
  const { rule, window, now, transitions, lines, of } = answer;
  const all = alertLines(answer);
  if (!rule)
    return (
      <Card title="Alert">
        <Empty title="No evaluator has published this rule" />
      </Card>
    );
  const fired = firedIn(transitions, now).filter((each) => each.to > window.start && each.from < window.end);
  return (
    <>
      {rule.expression ? (
        <ChartGroup
          title="Value and limit"
          id="alert"
          lines={all}
          captions={{ [rule.unit]: rule.condition }}
          precision={window.precision}
          start={window.start}
          end={window.end}
          now={now}
          marks={[]}
          firing={fired.map(({ from, to }) => [from, to])}
          note={`${lines.length < of ? `${number(lines.length)} of ${number(of)} values of ${rule.by}. ` : ""}${rule.expression}`}
          empty={<Empty title="Nothing to compare in this window">Choose another range.</Empty>}
        />
      ) : (
        <Card title="What it is about">
          <p>
            <About rule={rule} />
          </p>
        </Card>
      )}
      <Card title="Rule">
        <AlertRules rules={[rule]} now={now} />
      </Card>
      <Changes transitions={transitions} rules={[rule]} now={now} />
    </>
  );
}

/** A link to what a rule without a number is about. */
function About({ rule }: { rule: AlertRule }) {
  if (rule.when === "new_exception") return <Go view="exceptions">Exceptions</Go>;
  if (rule.when === "new_pattern") return <Go view="messages">Messages</Go>;
  if (rule.metric)
    return (
      <Go view="series" more={{ name: rule.metric }}>
        {rule.metric} with its expected range
      </Go>
    );
  return <Go view="overview">The verdict on the newest mark</Go>;
}
