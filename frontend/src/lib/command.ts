// `redmeter` commands to copy: they name the store unless it is the default one.

/** The default prefix. */
const USUAL_PREFIX = "redmeter:";
/** The end of the address of the default embedded server. */
const USUAL_STORE = "/redmeter/default";

interface At {
  location: string;
  prefix: string;
}

/** Quote a shell word. */
export function word(text: string): string {
  return /^[\w:/.@%+=-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

/** A command with the options for this store; null if the store is unknown. */
export function command(line: string, at: At | null): string {
  if (!at) return line;
  const { location, prefix } = at;
  const usual = location.startsWith("embedded://") && location.endsWith(USUAL_STORE);
  const named = /^(rediss?(\+sentinel|\+cluster)?|unix|embedded):\/\//.test(location) && !usual;
  return [line, named && `--url ${word(location)}`, prefix !== USUAL_PREFIX && `--prefix ${word(prefix)}`]
    .filter(Boolean)
    .join(" ");
}
