// Commands of `redmeter` to copy: they name the store, where it is not the one that is meant anyway.

/** The default prefix. */
const USUAL_PREFIX = "redmeter:";
/** The end of the address of the embedded server that is meant where no other is named. */
const USUAL_STORE = "/redmeter/default";

interface At {
  location: string;
  prefix: string;
}

/** A word of a shell. */
export function word(text: string): string {
  return /^[\w:/.@%+=-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

/** A command with the options that lead to this store; null: it is not known which. */
export function command(line: string, at: At | null): string {
  if (!at) return line;
  const { location, prefix } = at;
  const usual = location.startsWith("embedded://") && location.endsWith(USUAL_STORE);
  const named = /^(rediss?(\+sentinel|\+cluster)?|unix|embedded):\/\//.test(location) && !usual;
  return [line, named && `--url ${word(location)}`, prefix !== USUAL_PREFIX && `--prefix ${word(prefix)}`]
    .filter(Boolean)
    .join(" ");
}
