// Global state of the page: view state, URL, theme, and whether it is live.
import { computed, effect, signal } from "@preact/signals";
import { ranges, type Range } from "../lib/ranges";
import type { Finding, Level, StoreInfo } from "../api/types";
import { parse, serialise, type State, type Theme } from "./url";

const THEME = "redmeter.theme";

function remembered(): Theme | null {
  try {
    const theme = localStorage.getItem(THEME);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
}

function read(): State {
  const state = parse(location.search);
  return state.theme === "system" ? { ...state, theme: remembered() ?? "system" } : state;
}

export const state = signal<State>(read());

/** Where the mouse rests on a chart, and whether anybody can see the page. */
export const hovering = signal(false);
export const visible = signal(!document.hidden);
export const live = computed(() => !state.value.paused && !hovering.value && visible.value);

/** Incremented whenever colors change, so that canvases are redrawn. */
export const palette = signal(0);

export const store = signal<StoreInfo | null>(null);
/** The doctor's judgment of the store, which every view shows. */
export interface StoreJudgment {
  level: Level;
  /** Only problems. */
  findings: readonly Finding[];
  /** Processes that write. */
  writers: number;
}

export const health = signal<StoreJudgment | null>(null);
export const kept = computed<Range[]>(() => (store.value ? ranges(store.value.retention) : []));

/** Change the state. `push`: as a history entry of its own. */
export function set(more: Partial<State>, push = false): void {
  const next = { ...state.value, ...more };
  const query = serialise(next);
  if (query !== serialise(state.value)) {
    const url = location.pathname + query;
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  }
  state.value = next;
}

/** Go to another view, and scroll to the top. */
export function go(next: State): void {
  set(next, true);
  window.scrollTo(0, 0);
}

export function setTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(THEME);
    else localStorage.setItem(THEME, theme);
  } catch {
    // Without storage, only the URL remembers it.
  }
  set({ theme });
}

/** The window and its compared period, as parameters of the API. */
export function frame() {
  const { since, until, against, last } = state.value;
  return { since, until, against, last };
}

/** Zoom, or null: return to the present. */
export function zoom(period: { from: number; to: number } | null, more: Partial<State> = {}): void {
  const [since, until] = period ? [Math.max(0, period.from), period.to] : [null, null];
  set({ since, until, ...(period ? { last: null } : {}), offset: 0, ...more }, true);
}

/** Connect state and browser; once. */
export function connect(): void {
  window.addEventListener("popstate", () => {
    state.value = { ...parse(location.search), theme: state.value.theme };
  });
  document.addEventListener("visibilitychange", () => (visible.value = !document.hidden));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (palette.value += 1));
  effect(() => {
    const { theme } = state.value;
    if (theme === document.documentElement.dataset["theme"]) return;
    document.documentElement.dataset["theme"] = theme;
    palette.value = palette.peek() + 1;
  });
}
