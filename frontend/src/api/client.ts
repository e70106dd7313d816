// The only module that sends requests: GET, JSON, to the application that served this page, relative to
// the page's address.
import type { ErrorAnswer } from "./types";

/** Timeout of a request, milliseconds: longer than the server's own timeout for its store, so that the
 * server reports the unreachable part. */
const PATIENCE = 30_000;

/** A failed request. `status` 0: the server is unreachable. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fix: string,
  ) {
    super(message);
  }

  /** Whether a retry can help: the store or the server is unreachable or busy. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface Answer<T> {
  /** null: unchanged. */
  data: T | null;
  etag: string | null;
  /** Time of the response by the store's clock, Unix seconds. */
  now: number | null;
}

export type Parameters = Record<string, string | number | string[] | null | undefined>;

/** A path below the mount, e.g. `api/top?name=hits`; parameters that are null, undefined or "" are omitted. */
export function address(endpoint: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(key, String(each));
  }
  const text = query.toString();
  return `api/${endpoint}${text ? `?${text}` : ""}`;
}

/** Send a request. If nothing changed since the response with this etag, only `now` is new.
 *
 * Throws a Failure, or the reason that the signal was aborted with. */
export async function ask<T>(path: string, etag: string | null, signal: AbortSignal): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (etag) headers["If-None-Match"] = etag;
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(path, {
      headers,
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
    });
    if (response.status === 304) return { data: null, etag, now: nowOf(response) };
    body = await response.json();
  } catch (error) {
    if (signal.aborted) throw error;
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new Failure(
      0,
      "unreachable",
      late ? "The server takes too long to answer." : "The server does not answer.",
      "",
    );
  }
  if (response.ok) return { data: body as T, etag: response.headers.get("ETag"), now: nowOf(response) };
  const problem = (body as Partial<ErrorAnswer> | null)?.error;
  throw new Failure(
    response.status,
    problem?.code ?? "unknown",
    problem?.message ?? `The server answered ${response.status}.`,
    problem?.fix ?? "",
  );
}

function nowOf(response: Response): number | null {
  const now = Number(response.headers.get("Redmeter-Now") ?? NaN);
  return Number.isFinite(now) ? now : null;
}
