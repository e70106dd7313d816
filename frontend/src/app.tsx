// The page: bar, banner, the view that the address names, and announcements for screen readers.
import { useEffect, useRef } from "preact/hooks";
import { address } from "./api/client";
import { Feed } from "./api/feed";
import type { DoctorAnswer } from "./api/types";
import { plain } from "./lib/text";
import { nearest } from "./lib/ranges";
import { Banner } from "./parts/banner";
import { Bar } from "./parts/bar";
import { KeyHelp } from "./parts/keyhelp";
import { announced } from "./state/announce";
import { health, kept, set, state, store } from "./state/page";
import { ABOUT } from "./state/views";
import { Database } from "./views/database";
import { Jobs } from "./views/jobs";
import { TaskPage } from "./views/task";
import { AlertPage } from "./views/alert";
import { Alerts } from "./views/alerts";
import { Metrics } from "./views/metrics";
import { ExceptionPage } from "./views/exception";
import { Exceptions } from "./views/exceptions";
import { Health } from "./views/health";
import { Messages } from "./views/messages";
import { Overview } from "./views/overview";
import { Routes } from "./views/routes";
import { RoutePage } from "./views/route";
import { SeriesPage } from "./views/series";

/** Milliseconds between two requests for the store's health, which is one judgment for all views. */
const EVERY = 60_000;

const VIEWS = {
  overview: Overview,
  series: SeriesPage,
  routes: Routes,
  route: RoutePage,
  database: Database,
  jobs: Jobs,
  task: TaskPage,
  exceptions: Exceptions,
  exception: ExceptionPage,
  messages: Messages,
  metrics: Metrics,
  alerts: Alerts,
  alert: AlertPage,
  health: Health,
};

/** The store and its health, of which a range that is not kept finds the nearest one. */
function useStore(): void {
  useEffect(() => {
    const feed = new Feed<DoctorAnswer>(({ data }) => {
      if (!data) return;
      const {
        location,
        read_from,
        prefix,
        version,
        retention,
        histogram_retention: histograms,
        level,
        findings,
        writers,
      } = data;
      store.value = {
        location,
        read_from,
        prefix,
        version,
        retention,
        histograms,
      };
      health.value = {
        level,
        findings: findings.filter(({ level }) => level === "warn" || level === "fail"),
        writers: writers.filter((each) => each.alive).length,
      };
    });
    feed.question(address("doctor"), EVERY);
    feed.run(true);
    return () => feed.end();
  }, []);
}

export function App() {
  const { view, name, range } = state.value;
  const View = VIEWS[view];
  const named = ABOUT[view].of !== undefined;
  useStore();
  const first = useRef(true);
  useEffect(() => {
    // If the followed link is gone, focus moves to the heading; on a fresh page, it stays at the top.
    if (!first.current && document.activeElement === document.body)
      document.querySelector("h1")?.focus({ preventScroll: true });
    first.current = false;
    document.title = `${named && name && view !== "exception" ? plain(name, 80) : ABOUT[view].title} · Redmeter`;
  }, [view, name]);
  useEffect(() => {
    const known = nearest(kept.value, range);
    if (known && known.precision !== range) set({ range: known.precision });
  }, [kept.value, range]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to content
      </a>
      <Bar />
      <Banner />
      <main id="main" tabIndex={-1}>
        <View key={named ? `${view} ${name}` : view} />
      </main>
      <KeyHelp />
      <p class="away" role="status" aria-live="polite">
        {announced.value}
      </p>
    </>
  );
}
