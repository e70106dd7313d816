// Keys of the whole page: "/" searches, "?" lists the keys, Escape goes back to now.
import { signal } from "@preact/signals";
import { set, state, zoom } from "./page";

export const helped = signal(false);

/** Listen; once. */
export function listen(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const at = event.target as Element | null;
    if (event.key === "Escape") escape(at);
    if (at?.closest("input, select, textarea, [contenteditable]")) return;
    if (event.key === "?") helped.value = !helped.value;
    if (event.key === "/") {
      const field = document.querySelector<HTMLInputElement>("main input[type=search]");
      if (!field) return;
      event.preventDefault();
      field.focus();
    }
  });
}

/** Close the innermost open part; then leave the zoom. */
function escape(at: Element | null): void {
  const menu = document.querySelector<HTMLDetailsElement>("details.menu[open]");
  const { explain, mark, since } = state.value;
  if (helped.value) helped.value = false;
  else if (menu) {
    menu.open = false;
    menu.querySelector("summary")?.focus();
  } else if (at instanceof HTMLInputElement) at.blur();
  else if (explain || mark !== null) set({ explain: "", mark: null }, true);
  else if (since !== null) zoom(null);
}
