// Health: the store, its memory by kind, who writes and what they dropped, the cleaner, what is wrong.
import { address } from "../api/client";
import type { HealthAnswer, Writer } from "../api/types";
import { durationLabel, ranges } from "../lib/ranges";
import { BEHIND } from "../lib/store";
import { ago, momentOf } from "../lib/time";
import { memory, number, seconds } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { T } from "../parts/text";
import { Toolbar } from "../parts/toolbar";
import { useFeed } from "../state/live";
import { state } from "../state/page";
import { Findings } from "./findings";

/** Milliseconds between two questions. */
const EVERY = 5000;

export function Health() {
  const fed = useFeed<HealthAnswer>(address("health"), EVERY);
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
            </div>
            <Card title="Writers" about="processes seen in the last 24 h">
              <Writers writers={answer.writers} now={answer.now} />
            </Card>
            <div class="panels even">
              <Card title="Memory" about="by kind">
                <Memory of={answer.bytes} />
              </Card>
              <Card title="Retention" about="intervals kept per precision, and the number of counters">
                <Kept answer={answer} />
              </Card>
            </div>
          </>
        )}
      </Gate>
    </>
  );
}

function Store({ answer }: { answer: HealthAnswer }) {
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
          <span class="warn-text">no pass is known</span>
        ) : (
          <span title={momentOf(ended, clock)}>last pass {ago(ended, answer.now)}</span>
        )}
      </dd>
    </dl>
  );
}

/** What single precisions lack, summed: reason -> events of its worst precision. */
function lostOf(writer: Writer): number {
  return Object.values(writer.lost).reduce((sum, by) => sum + Math.max(0, ...Object.values(by)), 0);
}

function Writers({ writers, now }: { writers: readonly Writer[]; now: number }) {
  if (writers.length === 0)
    return (
      <Empty title="No process writes" code={'from redmeter import Meter; Meter().count("signups")'}>
        A process appears here within ten seconds of its first event.
      </Empty>
    );
  return (
    <div class="scroll" role="region" aria-label="Table: Writers" tabIndex={0}>
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col" class="figure">
              Seen
            </th>
            <th scope="col" class="figure">
              Last flush
            </th>
            <th scope="col" class="figure">
              Stored
            </th>
            <th scope="col" class="figure">
              Waiting
            </th>
            <th scope="col" class="figure">
              Dropped
            </th>
            <th scope="col" class="figure">
              Lost
            </th>
            <th scope="col">Trouble</th>
          </tr>
        </thead>
        <tbody>
          {writers.map((writer) => {
            const troubles = Object.values(writer.troubles).reduce((sum, each) => sum + each, 0);
            const lost = lostOf(writer);
            return (
              <tr
                key={`${writer.host} ${writer.pid} ${writer.instance} ${writer.seen}`}
                class={writer.alive ? "" : "off"}
              >
                <th scope="row">
                  <span class={`dot ${writer.alive ? "ok" : "unknown"}`}>
                    <span class="away">{writer.alive ? "alive" : "ended"}</span>
                  </span>{" "}
                  <T text={writer.host} most={60} />{" "}
                  <span class="faint">
                    {writer.pid}
                    {writer.instance !== null && ` · no. ${writer.instance}`}
                  </span>
                </th>
                <td class="figure">{ago(writer.seen, now)}</td>
                <td class="figure">{writer.last_flush === null ? "–" : ago(writer.last_flush, now)}</td>
                <td class="figure">{number(writer.stored)}</td>
                <td class="figure">{number(writer.buffered)}</td>
                <td class={writer.dropped ? "figure bad-text" : "figure"}>{number(writer.dropped)}</td>
                <td class={lost ? "figure bad-text" : "figure"}>{number(lost)}</td>
                <td class="grow">
                  {troubles > 0 ? (
                    <>
                      <span class="faint">{number(troubles)} ×, the last: </span>
                      <T text={writer.last_trouble} most={300} />
                    </>
                  ) : (
                    <span class="faint">none</span>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Memory({ of }: { of: Record<string, number | null> }) {
  const rows = Object.entries(of).sort((a, b) => (b[1] ?? 0) - (a[1] ?? 0));
  const most = Math.max(1, ...rows.map(([, size]) => size ?? 0));
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Kind</th>
          <th scope="col" class="figure">
            Memory
          </th>
          <th scope="col">
            <span class="away">Bar</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([kind, size]) => (
          <tr key={kind}>
            <th scope="row">
              <T text={kind} most={60} />
            </th>
            <td class="figure">{size === null ? <span class="faint">unknown</span> : memory(size)}</td>
            <td class="bar-cell">
              <span class="share-bar" aria-hidden="true">
                <span style={{ width: `${(((size ?? 0) / most) * 100).toFixed(1)}%` }} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Kept({ answer }: { answer: HealthAnswer }) {
  const histograms = new Set(Object.keys(answer.histogram_retention));
  const all = ranges({ ...answer.histogram_retention, ...answer.retention });
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col">Slices of</th>
          <th scope="col" class="figure">
            Reaches back
          </th>
          <th scope="col" class="figure">
            Counters
          </th>
          <th scope="col" class="figure">
            Histograms reach back
          </th>
        </tr>
      </thead>
      <tbody>
        {all.map(({ precision, step }) => {
          const samples = answer.retention[String(precision)];
          const observed = answer.histogram_retention[String(precision)];
          return (
            <tr key={precision}>
              <th scope="row">{step}</th>
              <td class="figure">{samples === undefined ? "–" : durationLabel(samples * precision)}</td>
              <td class="figure">{number(answer.series[String(precision)] ?? 0)}</td>
              <td class="figure">
                {histograms.has(String(precision)) && observed !== undefined
                  ? durationLabel(observed * precision)
                  : "–"}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
