// The only place that asks the server anything: GET, JSON, of the application that this page came
// from, relative to its own address.
import type { ErrorAnswer } from "./types";

/** Longest wait for an answer, milliseconds: longer than the server waits for its store, so that it is
 * the server that names the unreachable part. */
const PATIENCE = 30_000;

/** An answer that is none. `status` 0: the server was not reached. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fix: string,
  ) {
    super(message);
  }

  /** Whether asking again can help: the store or the server is away, or busy. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface Answer<T> {
  /** null: as before. */
  data: T | null;
  etag: string | null;
  /** When it was made, by the store's clock, Unix seconds. */
  now: number | null;
}

export type Parameters = Record<string, string | number | string[] | null | undefined>;

/** A path below the mount, e.g. `api/top?name=hits`; what is null, undefined or "" is left out. */
export function address(endpoint: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(key, String(each));
  }
  const text = query.toString();
  return `api/${endpoint}${text ? `?${text}` : ""}`;
}

/** Ask. Where nothing changed since the answer with this etag, only `now` is new.
 *
 * Throws a Failure, or what the signal was aborted with. */
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
