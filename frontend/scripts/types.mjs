// Makes src/api/generated.ts from the API's description; with --check says whether it is up to date.
import { readFileSync, writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const FROM = new URL("../../src/redmeter/dashboard/openapi.json", import.meta.url);
const TO = new URL("../src/api/generated.ts", import.meta.url);

// The page uses the schemas alone.
const { openapi: version, info, components } = JSON.parse(readFileSync(FROM, "utf8"));
const types = await openapi({
  openapi: version,
  info,
  paths: {},
  components: { schemas: components.schemas },
});
const made = `// Made by \`npm run types\` from openapi.json; not to be edited.\n${astToString(types)}`;
if (process.argv.includes("--check")) {
  let now = "";
  try {
    now = readFileSync(TO, "utf8");
  } catch {
    // Not made yet: as good as old.
  }
  if (now !== made) {
    console.error("src/api/generated.ts is not what openapi.json says: run `npm run types`.");
    process.exit(1);
  }
} else writeFileSync(TO, made);
