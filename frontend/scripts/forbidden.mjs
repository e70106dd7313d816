// Looks for what must not be in the sources. Names, labels and messages come from strangers, so they
// are text everywhere: nothing here makes markup of a string, runs one, or asks another server.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const RULES = [
  [/dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|srcdoc|DOMParser/, "makes markup of text"],
  [/document\.write|createContextualFragment|setHTML/, "makes markup of text"],
  [/\beval\(|new Function\b|javascript:/, "runs text"],
  [
    /\bstyle="|cssText|setAttribute\(\s*["'](style|on)/,
    "an inline style or handler; the policy of the page forbids it",
  ],
  [/["'`(](https?:)?\/\/(?!www\.w3\.org\/2000\/svg)/, "names another server"],
  [/\bimport\(|WebSocket|EventSource|sendBeacon|XMLHttpRequest/, "loads past api/client.ts"],
  [/@ts-ignore|@ts-nocheck|\bas any\b|: any\b/, "switches the types off"],
];
const root = fileURLToPath(new URL("../", import.meta.url));

let found = 0;
const files = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.(tsx?|css|svg|html)$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name));
for (const file of [...files, join(root, "index.html")]) {
  const text = readFileSync(file, "utf8");
  const rules =
    /fetch\(/.test(text) && !/api\/(client|client\.test)\.ts$/.test(file)
      ? [...RULES, [/\bfetch\(/, "asks past api/client.ts"]]
      : RULES;
  for (const [index, line] of text.split("\n").entries()) {
    for (const [rule, why] of rules) {
      if (!rule.test(line)) continue;
      console.error(`${file.slice(root.length)}:${index + 1}: ${why}: ${line.trim()}`);
      found += 1;
    }
  }
  if (/\.tsx?$/.test(file) && !file.endsWith("generated.ts") && !text.startsWith("//")) {
    console.error(`${file.slice(root.length)}: begins with no comment that says what lives there`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
