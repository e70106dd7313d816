// The alerts that every view shows: whether there are rules, and how many alerts fire.
import { signal } from "@preact/signals";
import type { AlertsAnswer } from "../api/types";

export const alerts = signal<AlertsAnswer | null>(null);
