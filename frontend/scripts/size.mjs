// Fails a build whose files, compressed one by one as a server sends them, are above the limit.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 150_000;
const root = fileURLToPath(new URL("../../src/redmeter/dashboard/static/", import.meta.url));

let sum = 0;
for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = join(entry.parentPath, entry.name);
  const size = gzipSync(readFileSync(path), { level: 6 }).length;
  sum += size;
  console.log(`${String(size).padStart(8)} B  ${path.slice(root.length)}`);
}
console.log(`${String(sum).padStart(8)} B  in all, compressed; at most ${LIMIT}`);
if (sum > LIMIT) {
  console.error("The page is too large: look at what was added, and at what it brings along.");
  process.exit(1);
}
