// Commands to copy.
import { expect, test } from "vitest";
import { command, word } from "./command";

test("a command names the store, unless it is the default one", () => {
  const usual = { location: "embedded:///home/a/.local/share/redmeter/default", prefix: "redmeter:" };
  expect(command("redmeter doctor", usual)).toBe("redmeter doctor");
  expect(command("redmeter doctor", null)).toBe("redmeter doctor");
  expect(command("redmeter doctor", { ...usual, prefix: "demo:" })).toBe("redmeter doctor --prefix demo:");
  expect(command("redmeter doctor", { location: "redis://db:6379/2", prefix: "it's:" })).toBe(
    "redmeter doctor --url redis://db:6379/2 --prefix 'it'\\''s:'",
  );
  const named = { location: "rediss+sentinel://a:1,b:2/figures/0", prefix: "redmeter:" };
  expect(command("redmeter doctor", named)).toBe(
    "redmeter doctor --url 'rediss+sentinel://a:1,b:2/figures/0'",
  );
});

test("a shell word is quoted if necessary", () => {
  expect(word("hits")).toBe("hits");
  expect(word('sales{a="b c"}')).toBe(`'sales{a="b c"}'`);
  expect(word("")).toBe("''");
});
