// Texts about the store.

/** For a page that reads from a replica. */
export const BEHIND = "Read from a replica: may be some moments behind.";

/** A short name of a store: the host of a server, or the folder of an embedded one, and the prefix unless it
 * is the default. */
export function shortName(location: string, prefix: string): string {
  const path = location.replace(/^[a-z+]+:\/\//, "").replace(/[/?#]+$/, "");
  const name = /^[^/]+:\d+/.exec(path)?.[0] ?? path.split("/").pop() ?? path;
  const suffix = prefix.replace(/:$/, "");
  return suffix && suffix !== "redmeter" ? `${name} · ${suffix}` : name;
}
