// The five numbers, each against the window before, each a way to what explains it.
import type { ComponentChildren } from "preact";
import type { Numbers } from "../api/types";
import type { State, View } from "../state/url";
import { figures, number, percent, seconds } from "../lib/units";
import type { Meaning } from "../lib/change";
import { Go } from "../parts/go";
import { Pill } from "../parts/pill";
import { T } from "../parts/text";

interface TileProps {
  title: string;
  value: number | null;
  before: number | null;
  written: (value: number) => string;
  /** Whether it is an estimate. */
  sampled?: boolean;
  meaning: Meaning;
  against?: string;
  to: View;
  more?: Partial<State>;
  note?: ComponentChildren;
  /** What would fill it. */
  none: string;
}

function Tile({
  title,
  value,
  before,
  written,
  sampled = false,
  meaning,
  against = "the window before",
  to,
  more = {},
  note,
  none,
}: TileProps) {
  const text = value === null ? "–" : written(value);
  const [figure = "", ...unit] = text.split(" ");
  return (
    <li>
      <Go view={to} more={more} class="tile">
        <span class="tile-title">{title}</span>
        <span class="tile-value">
          {sampled && value !== null && (
            <span class="about-sign" title="An estimate, from a sample">
              ~
            </span>
          )}
          {figure}
          {unit.length > 0 && <small> {unit.join(" ")}</small>}
        </span>
        <span class="tile-foot">
          {value === null ? (
            <span class="faint">{none}</span>
          ) : (
            <Pill value={value} before={before} meaning={meaning} against={against} />
          )}
          {note && <span class="tile-note">{note}</span>}
        </span>
      </Go>
    </li>
  );
}

export function Tiles({ numbers }: { numbers: Numbers }) {
  const { hits, errors, p95, slowest, logged } = numbers;
  return (
    <ul class="tiles" aria-label="The five numbers">
      <Tile
        title={hits.name && hits.name !== "hits" ? `${hits.name} a second` : "Hits a second"}
        value={hits.value}
        before={hits.before}
        sampled={hits.sampled}
        written={figures}
        meaning="neutral"
        to={hits.name ? "series" : "counters"}
        more={hits.name ? { name: hits.name } : {}}
        none="no hits yet"
      />
      <Tile
        title="Failing requests"
        value={errors.value}
        before={errors.before}
        written={percent}
        meaning="lower-is-better"
        to="pages"
        more={{ order: "failing" }}
        none="no requests yet"
      />
      <Tile
        title="95 % are faster than"
        value={p95.value}
        before={p95.before}
        sampled={p95.looked_at < p95.of}
        written={seconds}
        meaning="lower-is-better"
        to="pages"
        more={{ order: "p95" }}
        none="no durations yet"
      />
      <Tile
        title="Slowest page, p95"
        value={slowest.value}
        before={slowest.before}
        written={seconds}
        meaning="lower-is-better"
        to="pages"
        more={{ order: "p95" }}
        none="no pages yet"
        note={slowest.route !== null && slowest.value !== null && <T text={slowest.route} most={80} />}
      />
      <Tile
        title="Errors logged this hour"
        value={logged.value}
        before={logged.before}
        written={number}
        meaning="lower-is-better"
        against="the hour before"
        to="messages"
        more={{ severity: "error" }}
        none="nothing logged yet"
      />
    </ul>
  );
}
