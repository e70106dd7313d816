// What is said of the store in more than one place.

/** Where the page asks a replica. */
export const BEHIND = "Read from a replica: may be some moments behind.";
