// Commands to copy.
import { expect, test } from "vitest";
import { command, word } from "./command";

test("a command says which store, unless that is the usual one", () => {
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

test("a word of a shell is quoted where it has to be", () => {
  expect(word("hits")).toBe("hits");
  expect(word('sales{a="b c"}')).toBe(`'sales{a="b c"}'`);
  expect(word("")).toBe("''");
});
