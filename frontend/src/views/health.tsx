// Health: findings, the store, its memory by kind, its writers and their drops, the cleaner.
import { address } from "../api/client";
import type { DoctorAnswer, Writer } from "../api/types";
import { durationLabel, ranges } from "../lib/ranges";
import { BEHIND } from "../lib/store";
import { ago, momentOf } from "../lib/time";
import { memory, number, seconds } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { Table } from "../parts/table";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state } from "../state/page";
import { Findings } from "./findings";

/** Milliseconds between two requests. */
const EVERY = 5000;

export function Health() {
  const fed = useFeed<DoctorAnswer>(address("doctor"), EVERY);
  return (
    <>
      <Toolbar title="Health" ranged={false} />
      <Gate fed={fed}>
        {(answer) => (
          <>
            <div class="panels even">
              <Card title="Findings">
                <Findings level={answer.level} findings={answer.findings} all />
              </Card>
              <Card title="Store">
                <Store answer={answer} />
              </Card>
              <Card title="Retention" about="intervals kept per precision, and the number of counters">
                <Kept answer={answer} />
              </Card>
            </div>
            <div class="panels">
              <Card title="Writers" about="processes seen in the last 24 h">
                <Writers writers={answer.writers} now={answer.now} />
              </Card>
              <Card title="Memory" about="by kind">
                <Memory of={answer.bytes} />
              </Card>
            </div>
          </>
        )}
      </Gate>
    </>
  );
}

function Store({ answer }: { answer: DoctorAnswer }) {
  const { clock } = state.value;
  const { ended } = answer.cleaner;
  return (
    <dl class="facts">
      <dt>Address</dt>
      <dd>
        <T text={answer.location} most={300} />
      </dd>
      {answer.read_from === "replica" && (
        <>
          <dt>Readings</dt>
          <dd>{BEHIND}</dd>
        </>
      )}
      <dt>Prefix</dt>
      <dd>{answer.prefix ? <T text={answer.prefix} /> : <span class="faint">none</span>}</dd>
      <dt>Server</dt>
      <dd>
        <T text={answer.server} most={60} /> <T text={answer.version} most={60} />
      </dd>
      <dt>Clock</dt>
      <dd>
        {Math.abs(answer.clock_difference) < 0.5
          ? "as this machine's"
          : `${seconds(answer.clock_difference)} from this machine's`}
      </dd>
      <dt>Cleaner</dt>
      <dd>
        {ended === null ? (
          <span class="warn-text">no pass recorded</span>
        ) : (
          <span title={momentOf(ended, clock)}>last pass {ago(ended, answer.now)}</span>
        )}
      </dd>
    </dl>
  );
}

/** Events that single precisions lack: for each reason, those of the worst precision, summed. */
function lostOf(writer: Writer): number {
  return Object.values(writer.lost).reduce((sum, by) => sum + Math.max(0, ...Object.values(by)), 0);
}

function Writers({ writers, now }: { writers: readonly Writer[]; now: number }) {
  if (writers.length === 0)
    return (
      <Empty title="No active writers" code={'from redmeter import Meter; Meter().count("signups")'}>
        A process appears here within ten seconds of its first event.
      </Empty>
    );
  const bad = (count: number) => <span class={count > 0 ? "bad-text" : ""}>{number(count)}</span>;
  return (
    <Table
      label="Writers"
      rows={writers}
      keyOf={(writer) => `${writer.host} ${writer.pid} ${writer.instance} ${writer.seen}`}
      rowClass={(writer) => (writer.alive ? "" : "off")}
      columns={[
        {
          title: "Process",
          class: "names",
          cell: (writer) => (
            <>
              <span class={`dot ${writer.alive ? "ok" : "unknown"}`}>
                <span class="away">{writer.alive ? "alive" : "ended"}</span>
              </span>{" "}
              <T text={writer.host} most={60} />{" "}
              <span class="faint">
                {writer.pid}
                {writer.instance !== null && ` · no. ${writer.instance}`}
              </span>
            </>
          ),
        },
        { title: "Seen", cell: (writer) => ago(writer.seen, now) },
        {
          title: "Last flush",
          cell: (writer) => (writer.last_flush === null ? "–" : ago(writer.last_flush, now)),
        },
        { title: "Stored", cell: (writer) => number(writer.stored) },
        { title: "Waiting", cell: (writer) => number(writer.buffered) },
        { title: "Dropped", cell: (writer) => bad(writer.dropped) },
        {
          title: "Lost",
          // What a precision does not keep so far back is in coarser ones: nothing is wrong.
          cell: (writer) =>
            writer.unexpected || lostOf(writer) === 0
              ? bad(lostOf(writer))
              : `${number(lostOf(writer))} too old`,
        },
        { title: "Trouble", class: "names", cell: (writer) => <Trouble writer={writer} /> },
      ]}
    />
  );
}

function Trouble({ writer }: { writer: Writer }) {
  const troubles = Object.values(writer.troubles).reduce((sum, each) => sum + each, 0);
  if (troubles === 0) return <span class="faint">none</span>;
  return (
    <>
      <span class="faint">{number(troubles)} ×, the last: </span>
      <T text={writer.last_trouble} most={300} />
    </>
  );
}

function Memory({ of }: { of: Record<string, number | null> }) {
  const rows = Object.entries(of).sort((a, b) => (b[1] ?? 0) - (a[1] ?? 0));
  const most = Math.max(1, ...rows.map(([, size]) => size ?? 0));
  return (
    <Table
      rows={rows}
      keyOf={([kind]) => kind}
      rowClass={() => ""}
      columns={[
        { title: "Kind", class: "", cell: ([kind]) => <T text={kind} most={60} /> },
        {
          title: "Memory",
          cell: ([, size]) => (size === null ? <span class="faint">unknown</span> : memory(size)),
        },
        {
          title: "Bar",
          untitled: true,
          class: "bar-cell",
          cell: ([, size]) => (
            <span class="share-bar" aria-hidden="true">
              <span style={{ width: `${(((size ?? 0) / most) * 100).toFixed(1)}%` }} />
            </span>
          ),
        },
      ]}
    />
  );
}

function Kept({ answer }: { answer: DoctorAnswer }) {
  const { retention, histogram_retention: histograms, series } = answer;
  const reach = (samples: number | undefined, precision: number) =>
    samples === undefined ? "–" : durationLabel(samples * precision);
  return (
    <Table
      rows={ranges({ ...histograms, ...retention })}
      keyOf={({ precision }) => precision}
      rowClass={() => ""}
      columns={[
        { title: "Intervals of", class: "", cell: ({ step }) => step },
        { title: "Reaches back", cell: ({ precision }) => reach(retention[precision], precision) },
        { title: "Counters", cell: ({ precision }) => number(series[precision] ?? 0) },
        { title: "Histograms reach back", cell: ({ precision }) => reach(histograms[precision], precision) },
      ]}
    />
  );
}
