// The alerts, for all views: the bar requests them, others show how many fire and when they fired.
import { signal } from "@preact/signals";
import type { AlertsAnswer } from "../api/types";

export const alerts = signal<AlertsAnswer | null>(null);
