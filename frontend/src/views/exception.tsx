// One group of exceptions: its counts, its newest traceback, its routes and releases.
import { address } from "../api/client";
import type { ExceptionShare, ExceptionAnswer } from "../api/types";
import { ChartGroup, Nothing } from "../chart/group";
import { ERRORS } from "../lib/severity";
import { ago } from "../lib/time";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Go } from "../parts/go";
import { T } from "../parts/text";
import { sinceUntil } from "../parts/timebar";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state } from "../state/page";
import { countLine, typeOf } from "./exceptionnames";

/** Milliseconds between two requests. */
const EVERY = 10_000;
/** The API's name for all names beyond its limit. */
const OTHER = "(other)";

export function ExceptionPage() {
  const { name } = state.value;
  const fed = useFeed<ExceptionAnswer>(address("exception", { id: name, ...sinceUntil() }), EVERY);
  const group = fed.data?.exception;
  return (
    <>
      <Toolbar title={group ? <T text={typeOf(group.type)} most={120} /> : "Exception"} ranged>
        <span class="tag">exception</span>
      </Toolbar>
      <Gate fed={fed}>
        {(answer) =>
          answer.exception ? (
            <Body answer={answer} group={answer.exception} />
          ) : (
            <Card title="Exceptions">
              <Empty title="No such exception">
                Exceptions are kept for 90 days after the last one of their group.
              </Empty>
            </Card>
          )
        }
      </Gate>
    </>
  );
}

function Body({
  answer,
  group,
}: {
  answer: ExceptionAnswer;
  group: NonNullable<ExceptionAnswer["exception"]>;
}) {
  const { now, start, end, precision } = answer;
  return (
    <>
      <ChartGroup
        title="Exceptions over time"
        id="exception"
        lines={[countLine(group)]}
        captions={{ "": "Exceptions" }}
        precision={precision}
        start={start}
        end={end}
        now={now}
        marks={[]}
        empty={<Nothing />}
      />
      <div class="panels">
        <div class="column">
          <Card
            title="Latest traceback"
            about={ago(group.last, now)}
            actions={
              <Go view="messages" more={{ severity: ERRORS }} class="to">
                Error messages
              </Go>
            }
          >
            <p class="verdict-line">
              <b>
                <T text={group.type} most={200} />
              </b>{" "}
              <T text={group.message} most={300} />
              {group.place && (
                <span class="faint">
                  {" "}
                  at <T text={group.place} most={200} />
                </span>
              )}
            </p>
            <pre class="traceback" tabIndex={0} aria-label="Traceback">
              <T text={group.traceback || "No traceback was recorded."} lines most={6000} />
            </pre>
          </Card>
        </div>
        <div class="column">
          <Card title="Occurrences">
            <ul class="breakdown">
              <Fact title="In this window" text={number(group.count)} />
              <Fact title="All-time total" text={number(group.total)} />
              <Fact title="First seen" text={ago(group.first, now)} />
              <Fact title="Last seen" text={ago(group.last, now)} />
            </ul>
          </Card>
          <Shares title="Routes and tasks" shares={group.routes} route />
          <Shares title="Releases" shares={group.releases} />
        </div>
      </div>
    </>
  );
}

function Fact({ title, text }: { title: string; text: string }) {
  return (
    <li>
      <span class="grow">{title}</span>
      <span class="figure">{text}</span>
    </li>
  );
}

function Shares({
  title,
  shares,
  route = false,
}: {
  title: string;
  shares: readonly ExceptionShare[];
  route?: boolean;
}) {
  if (shares.length === 0) return null;
  return (
    <Card title={title} about="all-time">
      <ul class="breakdown">
        {shares.map(({ name, count }) => (
          <li key={name}>
            <span class="grow">
              {route && name !== OTHER ? (
                <Go view="route" more={{ name }}>
                  <T text={name} most={120} />
                </Go>
              ) : (
                <T text={name} most={120} />
              )}
            </span>
            <span class="figure">{number(count)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
