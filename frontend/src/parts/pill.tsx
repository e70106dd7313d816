// The change of a number compared with the window before.
import { change, type Counts, type Meaning } from "../lib/change";

interface Props {
  value: number | null;
  before: number | null;
  meaning: Meaning;
  /** The events behind both; see lib/change.ts. */
  counts?: Counts | null;
  /** "the 2 h before" or "yesterday". */
  against: string;
  /** Whether the period is visible, or for screen readers only. */
  named?: boolean;
  /** The reason why there is no compared value. */
  unknown?: string;
}

const ARROWS = { up: "M2 7 5 3 8 7", down: "M2 3 5 7 8 3", none: "" };

export function Pill({ value, before, meaning, against, counts = null, named = false, unknown = "" }: Props) {
  const { text, tone, direction } = change(value, before, meaning, counts);
  const nothing = before === null && unknown !== "";
  return (
    <span class={`pill ${tone}`}>
      {direction !== "none" && (
        <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
          <path
            d={ARROWS[direction]}
            fill="none"
            stroke="currentColor"
            stroke-width="1.6"
            stroke-linecap="round"
            stroke-linejoin="round"
          />
        </svg>
      )}
      {nothing ? `${against}: ${unknown}` : text}
      {before !== null && <span class={named ? "" : "away"}> vs {against}</span>}
    </span>
  );
}
