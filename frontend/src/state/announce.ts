// Rate-limited announcements for screen readers.
import { signal } from "@preact/signals";

/** Minimum milliseconds between two announcements; a newer one replaces one that waits. */
const PAUSE = 5000;

export const announced = signal("");

let last = 0;
let waiting: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(waiting);
  const wait = Math.max(0, last + PAUSE - Date.now());
  waiting = setTimeout(() => {
    last = Date.now();
    announced.value = text;
  }, wait);
}
