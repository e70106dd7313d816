// The feed with a function as its server: polling, pausing, backoff and recovery.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Feed, type Known } from "./feed";

type Reply = () => Response | Promise<Response>;

let requests: { path: string; etag: string | null }[];
let reply: Reply;
let states: Known<{ n: number }>[];
let feed: Feed<{ n: number }>;

const good = (n: number, etag = "") =>
  new Response(JSON.stringify({ n }), { headers: etag ? { ETag: etag } : {} });
const bad = (status: number) =>
  new Response(JSON.stringify({ error: { code: "c", message: "m", fix: "f" } }), { status });

beforeEach(() => {
  vi.useFakeTimers();
  requests = [];
  states = [];
  vi.stubGlobal("fetch", (path: string, init: { headers: Record<string, string> }) => {
    requests.push({ path, etag: init.headers["If-None-Match"] ?? null });
    return Promise.resolve().then(() => reply());
  });
  feed = new Feed((known) => states.push(known));
});

afterEach(() => {
  feed.end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

test("it sends a request immediately and then once per interval", async () => {
  reply = () => good(requests.length);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(2000);
  expect(states.at(-1)?.data).toEqual({ n: requests.length });
  expect(requests.length).toBeGreaterThanOrEqual(3);
});

test("while paused it sends a new request once", async () => {
  reply = () => good(1);
  feed.question("api/x", 100);
  await settle();
  feed.question("api/y", 100);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(requests.map((each) => each.path)).toEqual(["api/x", "api/y"]);
});

test("an unchanged answer is confirmed by its etag and kept", async () => {
  reply = () => (requests.length === 1 ? good(7, '"a"') : new Response(null, { status: 304 }));
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(1000);
  expect(requests.at(-1)?.etag).toBe('"a"');
  expect(states.at(-1)?.data).toEqual({ n: 7 });
});

test("while the store is unreachable the last answer stays, retries back off, and it recovers automatically", async () => {
  reply = () => good(1);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  reply = () => bad(503);
  await vi.advanceTimersByTimeAsync(1000);
  expect(states.at(-1)).toMatchObject({ data: { n: 1 }, failure: { status: 503, code: "c", fix: "f" } });
  const before = requests.length;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(requests.length - before).toBeLessThanOrEqual(6);
  reply = () => good(2);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(states.at(-1)).toMatchObject({ data: { n: 2 }, failure: null, retryAt: null });
});

test("an unreachable server is a temporary failure", async () => {
  reply = () => Promise.reject(new TypeError("failed to fetch"));
  feed.question("api/x", 1000);
  await settle();
  expect(states.at(-1)?.failure).toMatchObject({ status: 0, code: "unreachable", passing: true });
});

test("a response that is not JSON is a failure, not an exception", async () => {
  reply = () => new Response("<html>");
  feed.question("api/x", 1000);
  await settle();
  expect(states.at(-1)?.failure?.passing).toBe(true);
});

test("a bad request is not repeated every interval", async () => {
  reply = () => bad(400);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(9000);
  expect(requests).toHaveLength(1);
});

test("the answer to a replaced request is dropped", async () => {
  let release: (response: Response) => void = () => undefined;
  reply = () => new Promise<Response>((resolve) => (release = resolve));
  feed.question("api/x", 1000);
  await settle();
  const late = release;
  reply = () => good(2);
  feed.question("api/y", 1000);
  await settle();
  late(good(1));
  await settle();
  expect(states.map((known) => known.data)).toEqual([{ n: 2 }]);
});

test("it reports a late answer long before the timeout", async () => {
  let release: (response: Response) => void = () => undefined;
  reply = () => new Promise<Response>((resolve) => (release = resolve));
  feed.question("api/x", 1000);
  await vi.advanceTimersByTimeAsync(2900);
  expect(states).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  expect(states.at(-1)).toMatchObject({ late: true, failure: null });
  release(good(1));
  await settle();
  expect(states.at(-1)).toMatchObject({ late: false, data: { n: 1 } });
});

test("it publishes nothing after its end", async () => {
  reply = () => good(1);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  feed.end();
  const before = requests.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(requests).toHaveLength(before);
});
