// The short name of a store.
import { expect, test } from "vitest";
import { shortName } from "./store";

test("a store is called by its host or its folder, and its own prefix", () => {
  expect(shortName("redis://10.0.0.7:6379/0", "redmeter:")).toBe("10.0.0.7:6379");
  expect(shortName("db.example.org:6379", "shop:")).toBe("db.example.org:6379 · shop");
  expect(shortName("/home/jane/.local/share/redmeter/default", "redmeter:")).toBe("default");
  expect(shortName("embedded:///tmp/demo/store", "demo:")).toBe("store · demo");
});
