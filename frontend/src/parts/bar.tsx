// The top bar: navigation, the store, and the page's theme and clock.
import { address } from "../api/client";
import { useEffect, useState } from "preact/hooks";
import type { AlertsAnswer, ViewsAnswer } from "../api/types";
import { health, setTheme, set, state, store } from "../state/page";
import type { Theme } from "../state/url";
import { ABOUT, listOf, VIEWS } from "../state/views";
import { BEHIND, shortName } from "../lib/store";
import { plain } from "../lib/text";
import { alerts } from "../state/alerts";
import { link, useFeed } from "../state/live";
import { T } from "./text";
import { Go } from "./go";

/** Milliseconds between two checks for views with data. */
const EVERY = 60_000;
const NEVER = 86_400_000;
/** Milliseconds between two requests for alerts. */
const ALERTS_EVERY = 15_000;
const LEVELS = { ok: "healthy", warn: "with warnings", fail: "broken" } as const;
const THEMES: Record<Theme, { next: Theme; icon: string; text: string }> = {
  system: { next: "light", text: "as the system", icon: "M3 4h14v9H3zM7 17h6M10 13v4" },
  light: {
    next: "dark",
    text: "light",
    icon: "M10 6.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7M10 1.500v2M10 16.500v2M1.500 10h2M16.500 10h2M4 4l1.400 1.400M14.600 14.600 16 16M4 16l1.400-1.400M14.600 5.400 16 4",
  },
  dark: { next: "system", text: "dark", icon: "M16.500 12A7 7 0 0 1 8 3.500a7 7 0 1 0 8.500 8.500Z" },
};

/** A cookie that the server sets with the one of a sign-in, which scripts cannot see. */
const SIGNED_IN = /(^|; )redmeter-signed-in=1/;

export function Bar() {
  const { view, clock, theme } = state.value;
  const look = THEMES[theme];
  const lost = link.value.failure?.passing ?? false;
  const level = lost ? undefined : health.value?.level;
  const at = listOf(view);
  // Data is kept for months, so polling stops once every view has data.
  const [all, settle] = useState(false);
  const { data } = useFeed<ViewsAnswer>(address("views"), all ? NEVER : EVERY, false);
  useEffect(() => settle(data !== null && data.database && data.jobs && data.exceptions), [data]);
  const { data: current } = useFeed<AlertsAnswer>(address("alerts", { limit: 200 }), ALERTS_EVERY, false);
  useEffect(() => void (alerts.value = current), [current]);
  const firing = current?.firing ?? 0;
  const has = { ...data, alerts: (current?.rules.length ?? 0) > 0 };
  const views = VIEWS.filter((each) => {
    const { needs, of } = ABOUT[each];
    return !of && (!needs || each === at || has[needs]);
  });
  return (
    <header class="bar">
      <Go view="overview" class="brand" label="Redmeter, overview">
        <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
          <rect width="32" height="32" rx="8" class="brand-ground" />
          <path
            d="M6 18h5l3-8 4.500 13 3-8 1.500 3H26"
            fill="none"
            stroke="#fff"
            stroke-width="2.600"
            stroke-linecap="round"
            stroke-linejoin="round"
          />
        </svg>
        <span class="brand-name">Redmeter</span>
      </Go>
      <nav aria-label="Views">
        <ul>
          {views.map((each) => (
            <li key={each}>
              <Go view={each} current={each === at}>
                {ABOUT[each].title}
                {each === "alerts" && firing > 0 && (
                  <span class="dot fail">
                    <span class="away">{firing} firing</span>
                  </span>
                )}
                {each === "health" && level && level !== "ok" && (
                  <span class={`dot ${level}`}>
                    <span class="away">{LEVELS[level]}</span>
                  </span>
                )}
              </Go>
            </li>
          ))}
        </ul>
      </nav>
      <div class="bar-end">
        {store.value && (
          <Go
            view="health"
            class="store"
            label={`Store ${store.value.location}, ${level ? LEVELS[level] : "not known now"}${
              store.value.read_from === "replica" ? `. ${BEHIND}` : ""
            }`}
          >
            <span class={`dot ${level ?? "unknown"}`} />
            <span class="store-name" title={plain(store.value.location, 200)}>
              <T text={shortName(store.value.location, store.value.prefix)} most={60} />
            </span>
            {store.value.read_from === "replica" && (
              <span class="pill" title={BEHIND}>
                replica
              </span>
            )}
          </Go>
        )}
        <button
          type="button"
          class="quiet clock"
          aria-label={`Times are ${clock === "utc" ? "UTC" : "local"}: switch`}
          onClick={() => set({ clock: clock === "utc" ? "local" : "utc" })}
        >
          {clock === "utc" ? "UTC" : "Local"}
        </button>
        <button
          type="button"
          class="quiet icon"
          aria-label={`Colours: ${look.text}. Switch to ${THEMES[look.next].text}`}
          title={`Colours: ${look.text}`}
          onClick={() => setTheme(look.next)}
        >
          <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
            <path
              d={look.icon}
              fill="none"
              stroke="currentColor"
              stroke-width="1.5"
              stroke-linecap="round"
              stroke-linejoin="round"
            />
          </svg>
        </button>
        {SIGNED_IN.test(document.cookie) && (
          <a class="quiet sign-out" href="sign-out">
            Sign out
          </a>
        )}
      </div>
    </header>
  );
}
