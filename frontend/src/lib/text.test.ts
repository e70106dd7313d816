// Untrusted text: hidden characters become visible, all others stay.
import { expect, test } from "vitest";
import { edged, pieces, plain, quoted } from "./text";

test("ordinary text in any script is one piece as it came", () => {
  for (const text of ["hits", "日本語 🍵", "עברית", "👩‍💻 ❤️", "می\u200cخواهم", "<b onclick=x>{{7*7}}</b>"]) {
    expect(pieces(text)).toEqual([{ text }]);
  }
});

test("bidirectional controls become visible, with their codes", () => {
  expect(pieces("a\u202eb")).toEqual([{ text: "a" }, { text: "⟨U+202E⟩", code: "U+202E" }, { text: "b" }]);
});

test("two names that differ by something invisible look different", () => {
  expect(plain("hi\u200dts\u200b")).toBe("hi⟨U+200D⟩ts⟨U+200B⟩");
});

test("control characters become their pictures", () => {
  expect(plain("a\u0000\u001b[31m\u007f")).toBe("a␀␛[31m␡");
});

test("blanks at either end of a name show", () => {
  expect(edged(" ")).toBe("␠");
  expect(edged(" a b  ")).toBe("␠a b␠␠");
});

test("a Python literal has the same value, with hidden characters escaped", () => {
  expect(quoted('sales{shop="\\"}')).toBe('"sales{shop=\\"\\\\\\"}"');
  expect(quoted("a\u202eb\u{e0041}\ud83c")).toBe('"a\\u202eb\\U000e0041\\ud83c"');
});

test("newlines stay where lines are wanted, and show where not", () => {
  expect(pieces("a\nb", true)).toEqual([{ text: "a\nb" }]);
  expect(plain("a\nb")).toBe("a␊b");
});

test("halves of surrogate pairs show, pairs stay", () => {
  expect(plain("\ud83c\udf75")).toBe("🍵");
  expect(plain("x\ud83cy")).toBe("x⟨U+D83C⟩y");
});

test("long text is cut visibly, and empty text has no pieces", () => {
  expect(plain("x".repeat(300), 10)).toBe("xxxxxxxxxx…");
  expect(pieces("")).toEqual([]);
});
