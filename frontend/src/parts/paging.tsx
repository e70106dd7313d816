// Paging through a long list, and a field that filters it.
import { useEffect, useRef, useState } from "preact/hooks";
import { set, state } from "../state/page";
import { Empty } from "./empty";

/** Rows of a page. */
export const LIMIT = 50;
/** Debounce of the filter, milliseconds. */
const REST = 250;

/** "1 to 50 of 618". */
export function placeOf(offset: number, rows: number, found: number): string {
  const written = (count: number) => count.toLocaleString("en");
  return `${written(offset + 1)} to ${written(offset + rows)} of ${written(Math.max(found, offset + rows))}`;
}

export function Paging({ offset, total }: { offset: number; total: number }) {
  if (total <= LIMIT && offset === 0) return null;
  const to = (next: number) => set({ offset: next }, true);
  return (
    <div class="choice" role="group" aria-label="Page of the list">
      <button type="button" disabled={offset === 0} onClick={() => to(Math.max(0, offset - LIMIT))}>
        Previous
      </button>
      <button type="button" disabled={offset + LIMIT >= total} onClick={() => to(offset + LIMIT)}>
        Next
      </button>
    </div>
  );
}

export function Filter({ label, most }: { label: string; most: number }) {
  const { filter } = state.value;
  const [text, write] = useState(filter);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => write(filter), [filter]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <input
      type="search"
      class="filter"
      aria-label={label}
      placeholder={`${label} …`}
      value={text}
      maxLength={most}
      spellcheck={false}
      onInput={(event) => {
        const typed = event.currentTarget.value;
        write(typed);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => set({ filter: typed, offset: 0 }), REST);
      }}
    />
  );
}

/** Shown past the end of a list, where an old link may lead. */
export function PastTheEnd() {
  return (
    <Empty title="No more rows">
      <button type="button" class="quiet" onClick={() => set({ offset: 0 }, true)}>
        Back to the first page
      </button>
    </Empty>
  );
}
