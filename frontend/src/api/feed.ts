// Repeats one request and publishes its state. It backs off after failures, recovers automatically and
// can be paused. One request is in flight at a time; the answer to a replaced request is dropped.
import { ask, Failure } from "./client";

/** Milliseconds after which a missing answer is reported as late. */
const LATE = 3000;
/** Backoff in milliseconds after the first, second … failure. */
const BACK_OFF = [1000, 2000, 4000, 8000, 15_000] as const;

export interface Known<T> {
  data: T | null;
  /** The request that `data` answers. */
  path: string;
  /** Time of the answer by the store's clock, Unix seconds. */
  now: number | null;
  failure: Failure | null;
  /** Time of the next retry after a temporary failure, milliseconds of Date.now(). */
  retryAt: number | null;
  /** Whether the answer is late. */
  late: boolean;
}

export class Feed<T> {
  private known: Known<T> = { data: null, path: "", now: null, failure: null, retryAt: null, late: false };
  private path = "";
  private every = 0;
  private etag: string | null = null;
  private failures = 0;
  private running = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private under: AbortController | null = null;

  /** `publish` is called with the state whenever it changes or is confirmed. */
  constructor(private readonly publish: (known: Known<T>) => void) {}

  /** Set the request and its interval in milliseconds. A new request is sent immediately, even while
   * paused. */
  question(path: string, every: number): void {
    this.every = every;
    if (path === this.path) return;
    this.path = path;
    this.etag = null;
    this.failures = 0;
    this.known = { ...this.known, failure: null, retryAt: null };
    this.again();
  }

  /** Resume immediately, or pause. */
  run(running: boolean): void {
    if (running === this.running) return;
    this.running = running;
    if (running && !this.under) this.again();
    if (!running) clearTimeout(this.timer);
  }

  /** Send the request now. */
  again(): void {
    clearTimeout(this.timer);
    this.under?.abort();
    this.under = null;
    if (this.path) void this.once();
  }

  /** Stop for good. */
  end(): void {
    this.running = false;
    clearTimeout(this.timer);
    this.under?.abort();
    this.under = null;
  }

  private async once(): Promise<void> {
    const began = Date.now();
    const path = this.path;
    const under = new AbortController();
    this.under = under;
    const late = setTimeout(() => {
      if (under.signal.aborted) return;
      this.known = { ...this.known, late: true };
      this.publish(this.known);
    }, LATE);
    try {
      const answer = await ask<T>(path, this.etag, under.signal);
      if (under.signal.aborted) return;
      this.failures = 0;
      this.etag = answer.etag;
      const data = answer.data ?? this.known.data;
      this.known = { data, path, now: answer.now, failure: null, retryAt: null, late: false };
      this.next(Math.max(0, this.every - (Date.now() - began)));
    } catch (error) {
      if (under.signal.aborted) return;
      const failure = error instanceof Failure ? error : new Failure(0, "unknown", String(error), "");
      const wait = failure.passing
        ? (BACK_OFF[Math.min(this.failures, BACK_OFF.length - 1)] ?? 0)
        : Math.max(this.every, 10_000);
      this.failures += 1;
      // A missing counter may count again, so even permanent failures are retried, but rarely.
      const retryAt = failure.passing ? Date.now() + wait : null;
      this.known = { ...this.known, failure, retryAt, late: false };
      this.next(wait, failure.passing);
    } finally {
      clearTimeout(late);
    }
    this.under = null;
    this.publish(this.known);
  }

  private next(wait: number, always = false): void {
    clearTimeout(this.timer);
    if (this.running || always) this.timer = setTimeout(() => void this.once(), wait);
  }
}
