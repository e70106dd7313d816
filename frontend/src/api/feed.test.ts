// The feed against a server made of a function: when it asks, rests, backs off and recovers.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Feed, type Known } from "./feed";

type Reply = () => Response | Promise<Response>;

let asked: { path: string; etag: string | null }[];
let reply: Reply;
let told: Known<{ n: number }>[];
let feed: Feed<{ n: number }>;

const good = (n: number, etag = "") =>
  new Response(JSON.stringify({ n }), { headers: etag ? { ETag: etag } : {} });
const bad = (status: number) =>
  new Response(JSON.stringify({ error: { code: "c", message: "m", fix: "f" } }), { status });

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  told = [];
  vi.stubGlobal("fetch", (path: string, init: { headers: Record<string, string> }) => {
    asked.push({ path, etag: init.headers["If-None-Match"] ?? null });
    return Promise.resolve().then(() => reply());
  });
  feed = new Feed((known) => told.push(known));
});

afterEach(() => {
  feed.end();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

test("it asks at once and then at its pace", async () => {
  reply = () => good(asked.length);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(2000);
  expect(told.at(-1)?.data).toEqual({ n: asked.length });
  expect(asked.length).toBeGreaterThanOrEqual(3);
});

test("at rest it asks a new question once and no more", async () => {
  reply = () => good(1);
  feed.question("api/x", 100);
  await settle();
  feed.question("api/y", 100);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.map((each) => each.path)).toEqual(["api/x", "api/y"]);
});

test("what did not change is confirmed by its etag, and the answer stays", async () => {
  reply = () => (asked.length === 1 ? good(7, '"a"') : new Response(null, { status: 304 }));
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked.at(-1)?.etag).toBe('"a"');
  expect(told.at(-1)?.data).toEqual({ n: 7 });
});

test("while the store is away the last answer stays, tries get rarer, and it recovers by itself", async () => {
  reply = () => good(1);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  reply = () => bad(503);
  await vi.advanceTimersByTimeAsync(1000);
  expect(told.at(-1)).toMatchObject({ data: { n: 1 }, failure: { status: 503, code: "c", fix: "f" } });
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(asked.length - before).toBeLessThanOrEqual(6);
  reply = () => good(2);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(told.at(-1)).toMatchObject({ data: { n: 2 }, failure: null, retryAt: null });
});

test("a server that is not there is a failure that passes", async () => {
  reply = () => Promise.reject(new TypeError("failed to fetch"));
  feed.question("api/x", 1000);
  await settle();
  expect(told.at(-1)?.failure).toMatchObject({ status: 0, code: "unreachable", passing: true });
});

test("what is not JSON is a failure, not an exception", async () => {
  reply = () => new Response("<html>");
  feed.question("api/x", 1000);
  await settle();
  expect(told.at(-1)?.failure?.passing).toBe(true);
});

test("a bad question is not repeated at pace", async () => {
  reply = () => bad(400);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  await vi.advanceTimersByTimeAsync(9000);
  expect(asked).toHaveLength(1);
});

test("the answer of a question that is no longer asked is dropped", async () => {
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
  expect(told.map((known) => known.data)).toEqual([{ n: 2 }]);
});

test("it says that it waits, long before it gives up", async () => {
  let release: (response: Response) => void = () => undefined;
  reply = () => new Promise<Response>((resolve) => (release = resolve));
  feed.question("api/x", 1000);
  await vi.advanceTimersByTimeAsync(2900);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  expect(told.at(-1)).toMatchObject({ late: true, failure: null });
  release(good(1));
  await settle();
  expect(told.at(-1)).toMatchObject({ late: false, data: { n: 1 } });
});

test("after its end it is silent", async () => {
  reply = () => good(1);
  feed.question("api/x", 1000);
  feed.run(true);
  await settle();
  feed.end();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(before);
});
