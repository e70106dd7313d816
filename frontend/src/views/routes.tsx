// Routes: the busiest, the slowest, by error rate, and by share of time.
import type { RoutesAnswer } from "../api/types";
import { durationLabel } from "../lib/ranges";
import { NoRoutes, RouteTable } from "./routetable";
import { Ranked } from "./ranked";
import { useFailing } from "./usestandouts";

const ORDERS = [
  { value: "count", text: "Busiest" },
  { value: "p95", text: "Slowest" },
  { value: "failing", text: "Error rate", fails: true },
  { value: "total", text: "Most time" },
];

export function Routes() {
  const bad = useFailing("route");
  return (
    <Ranked<RoutesAnswer>
      title="Routes"
      path="routes"
      thing="route"
      event="request"
      orders={ORDERS}
      about={({ sampled }) => (sampled ? ", response times of a sample of requests" : "")}
      table={({ rows }, order, sort) => <RouteTable {...{ rows, order, bad, sort }} />}
      note={({ window }) => (
        <>
          Share of time: the total time of a route's requests, as a share of that of all routes. p95 from
          intervals of {durationLabel(window.histograms)}.
        </>
      )}
      none={<NoRoutes />}
    />
  );
}
