// The hook of a view: it repeats one request while the page is live, and publishes the outcome for the
// banner.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Failure } from "../api/client";
import { Feed, type Known } from "../api/feed";
import type { Span } from "../api/types";
import { live, set, state } from "./page";

export interface Link {
  failure: Failure | null;
  retryAt: number | null;
  /** Time of the displayed data by the store's clock, Unix seconds. */
  now: number | null;
  /** Whether the answer is late. */
  late: boolean;
  /** The parts that the last answer lacks, as sentences. */
  missing: readonly string[];
  /** The window of that data; null: it has none. */
  window: Span | null;
  again: () => void;
}

export const link = signal<Link>({
  failure: null,
  retryAt: null,
  now: null,
  late: false,
  missing: [],
  window: null,
  again: () => undefined,
});

/** Whether the range ends in the past. */
export const past = computed(() => {
  const { now, window } = link.value;
  const { since, until } = state.value;
  return since !== null && now !== null && (window?.end ?? until ?? now) <= now;
});

/** The last answers, so that going back shows data immediately. */
const memory = new Map<string, unknown>();
const REMEMBERED = 6;

function remember(path: string, data: unknown): void {
  memory.delete(path);
  memory.set(path, data);
  for (const oldest of memory.keys()) {
    if (memory.size <= REMEMBERED) break;
    memory.delete(oldest);
  }
}

export interface Fed<T> {
  data: T | null;
  failure: Failure | null;
  /** Whether the data answers an earlier request, or the server is unreachable. */
  stale: boolean;
}

/** The zoom of an address can have any edges; every panel shows the whole intervals that the answer names. */
function snap(path: string, { start, end }: Span): void {
  const { since, until } = state.peek();
  if (path.includes(`since=${since}&until=${until}&`) && (since !== start || until !== end))
    set({ since: start, until: end });
}

/** `reported`: whether the banner and the clock of the page are about this request. */
export function useFeed<T extends { now: number; missing: string[]; window?: unknown }>(
  path: string,
  every: number,
  reported = true,
): Fed<T> {
  const [known, setKnown] = useState<Known<T>>(() => ({
    data: (memory.get(path) as T | undefined) ?? null,
    path,
    now: null,
    failure: null,
    retryAt: null,
    late: false,
  }));
  const feed = useRef<Feed<T> | null>(null);
  useEffect(() => {
    const made = new Feed<T>((next) => {
      if (next.data && !next.failure) remember(next.path, next.data);
      const { failure, retryAt, late } = next;
      const window = (next.data?.window ?? null) as Span | null;
      if (reported && window?.start && !next.failure) snap(`${next.path}&`, window);
      if (reported)
        link.value = {
          window: window?.start ? window : null,
          failure,
          retryAt,
          late,
          missing: next.data?.missing ?? [],
          now: next.now ?? next.data?.now ?? link.peek().now,
          again: () => made.again(),
        };
      setKnown((before) =>
        next.data === null && before.data ? { ...next, data: before.data, path: before.path } : next,
      );
    });
    feed.current = made;
    return () => {
      made.end();
      feed.current = null;
    };
  }, []);
  useEffect(() => feed.current?.question(path, every), [path, every]);
  useEffect(() => live.subscribe((on) => feed.current?.run(on)), []);
  // Requests that poll rarely recover with the page.
  useEffect(() => {
    if (reported || !known.failure?.passing) return;
    let lost = link.peek().failure !== null;
    return link.subscribe(({ failure }) => {
      if (lost && failure === null) feed.current?.again();
      lost = failure !== null;
    });
  }, [known.failure]);
  return { data: known.data, failure: known.failure, stale: known.path !== path || known.failure !== null };
}
