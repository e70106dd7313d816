// The views of the page, in the order of the bar. A new view takes a row here and a component in app.tsx.
import type { ViewsAnswer } from "../api/types";

interface About {
  title: string;
  /** The bar shows it only if there is data for it. */
  needs?: Exclude<keyof ViewsAnswer, "now" | "missing"> | "alerts";
  /** The view of the bar that it belongs to, which is shown if the URL has no name. */
  of?: string;
}

const about = <T extends Record<string, About>>(views: T): T => views;

const TABLE = about({
  overview: { title: "Overview" },
  routes: { title: "Routes" },
  database: { title: "Database", needs: "database" },
  jobs: { title: "Jobs", needs: "jobs" },
  exceptions: { title: "Exceptions", needs: "exceptions" },
  messages: { title: "Messages" },
  metrics: { title: "Metrics" },
  alerts: { title: "Alerts", needs: "alerts" },
  health: { title: "Health" },
  route: { title: "Route", of: "routes" },
  task: { title: "Task", of: "jobs" },
  exception: { title: "Exception", of: "exceptions" },
  series: { title: "Metric", of: "metrics" },
  alert: { title: "Alert", of: "alerts" },
});

export type View = keyof typeof TABLE;
export const ABOUT: Record<View, About> = TABLE;
export const VIEWS = Object.keys(TABLE) as View[];

/** The view of the bar that a view belongs to. */
export const listOf = (view: View): View => (ABOUT[view].of as View | undefined) ?? view;
