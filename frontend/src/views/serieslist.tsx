// A filtered list of the series of one kind, a page at a time.
import { useEffect, useState } from "preact/hooks";
import { address } from "../api/client";
import type { MetricsAnswer } from "../api/types";
import { pollEvery } from "../lib/ranges";
import { number } from "../lib/units";
import { Card } from "../parts/card";
import { Empty } from "../parts/empty";
import { Gate } from "../parts/gate";
import { LIMIT, Paging, PastTheEnd, placeOf } from "../parts/paging";
import { useFeed } from "../state/live";
import { frame, set, state } from "../state/page";
import { MetricTable } from "./metrictable";
import { nextPlace, patternIn, type Place } from "./filtering";
import { KINDS, type Kind } from "./names";
import { madeFrom, nextRows, reachable, type Rows } from "./ranking";

export const ORDERS = [
  { value: "name", text: "Name" },
  { value: "count", text: "Count" },
  { value: "change", text: "Change" },
] as const;

/** Rows per kind if all kinds are listed. */
const AMONG = 20;

/** `among`: listed with other kinds, so only its first rows are shown. */
export function SeriesList({ kind, order, among }: { kind: Kind; order: string; among: boolean }) {
  const { range, filter } = state.value;
  const offset = among ? 0 : state.value.offset;
  const [place, look] = useState<Place>("anywhere");
  const first = kind === "gauge" ? "few gauges" : "names";
  const [listed, list] = useState<Rows>(first);
  const path = address("metrics", {
    precision: range,
    ...frame(),
    pattern: patternIn(place, filter),
    kind,
    grouped: listed === "names" ? 1 : "",
    order: order === "name" ? "" : order,
    limit: among ? AMONG : LIMIT,
    offset: offset || "",
  });
  const fed = useFeed<MetricsAnswer>(path, pollEvery(range));
  useEffect(() => {
    look("anywhere");
    list(first);
  }, [filter, kind]);
  useEffect(() => {
    if (!fed.data || fed.stale) return;
    look(nextPlace(place, filter, fed.data));
    list(nextRows(listed, fed.data));
  }, [fed.data, fed.stale]);
  return <Gate fed={fed}>{(answer) => <Listed {...{ answer, kind, order, offset, among, place }} />}</Gate>;
}

interface ListedProps {
  answer: MetricsAnswer;
  kind: Kind;
  order: string;
  offset: number;
  among: boolean;
  place: Place;
}

function Listed({ answer, kind, order, offset, among, place }: ListedProps) {
  const { rows, found, window, now } = answer;
  const { filter } = state.value;
  const { text: title = "", code = "" } = KINDS.find((each) => each.value === kind) ?? {};
  const begins = place === "beginning" && filter !== "" ? ", those that begin so" : "";
  const partly = found < answer.total || answer.ranked_at !== null;
  const more = partly ? madeFrom(answer, now, rows.some((row) => row.series > 1) || order !== "name") : "";
  // Percentiles are read only for the rows on display, so rows are ordered by their means.
  const by = kind === "histogram" && order === "change" ? ", ordered by the change of the mean" : "";
  const all = (
    <button type="button" class="quiet" onClick={() => set({ kind: kind === "counter" ? "" : kind }, true)}>
      All of them
    </button>
  );
  const actions = among ? found > rows.length && all : <Paging offset={offset} total={reachable(answer)} />;
  return (
    <Card
      title={title}
      about={rows.length > 0 && `${placeOf(offset, rows.length, found)}${begins}${more}${by}`}
      actions={found > rows.length && actions}
    >
      <MetricTable
        rows={rows}
        window={window}
        label={title}
        empty={
          <None
            {...{ answer, offset, title }}
            code={`from redmeter import Meter; Meter().${code}`}
            among={among}
          />
        }
      />
      {rows.length > 20 && found > LIMIT && (
        <div class="card-foot">
          <Paging offset={offset} total={reachable(answer)} />
        </div>
      )}
    </Card>
  );
}

interface NoneProps {
  answer: MetricsAnswer;
  offset: number;
  title: string;
  code: string;
  among: boolean;
}

/** Why the list is empty, and how to fill it. */
function None({ answer, offset, title, code, among }: NoneProps) {
  const { found, total, examined } = answer;
  if (offset > 0 && found > 0) return <PastTheEnd />;
  if (state.value.filter)
    return (
      <Empty title={`No ${title.toLowerCase()} match`}>
        {examined < total ? `Searched the first ${number(examined)} of ${number(total)} names. ` : ""}
        {!among && (
          <>
            <code>*</code> matches anything: <code>http_*</code>.
          </>
        )}
      </Empty>
    );
  return (
    <Empty title={`No ${title.toLowerCase()} in this window`} code={code}>
      Metrics appear here automatically as soon as your app records them.
    </Empty>
  );
}
