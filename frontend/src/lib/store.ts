// Texts about the store.

/** For a page that reads from a replica. */
export const BEHIND = "Read from a replica: may be some moments behind.";
