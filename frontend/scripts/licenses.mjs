// Puts the licences of what is bundled beside the bundle, as they ask for.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const ROOT = new URL("../", import.meta.url);

/** Everything that the page depends on, and what that depends on. */
function bundled(names, found = new Map()) {
  for (const name of names) {
    if (found.has(name)) continue;
    const folder = new URL(`node_modules/${name}/`, ROOT);
    const {
      version,
      license,
      dependencies = {},
    } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} brings no licence`);
    found.set(
      name,
      `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), "utf8").trim()}\n`,
    );
    bundled(Object.keys(dependencies), found);
  }
  return found;
}

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
const texts = [...bundled(Object.keys(dependencies)).values()];
writeFileSync(
  new URL("../src/redmeter/dashboard/static/licenses.txt", ROOT),
  texts.join(`\n${"-".repeat(80)}\n\n`),
);
