// Names for the types of the API's answers.

import type { components } from "./generated";

type Schemas = components["schemas"];

export type ChangeRow = Schemas["ChangeRow"];
export type ChangedGroup = Schemas["ChangedGroup"];
export type MetricRow = Schemas["MetricRow"];
export type MetricsAnswer = Schemas["MetricsAnswer"];
export type Curve = Schemas["ChartCurve"];
export type DetailAnswer = Schemas["DetailAnswer"];
export type ErrorAnswer = Schemas["ErrorAnswer"];
export type ExceptionSummary = Schemas["ExceptionSummary"];
export type ExceptionShare = Schemas["ExceptionShare"];
export type ExceptionAnswer = Schemas["ExceptionAnswer"];
export type ExceptionsAnswer = Schemas["ExceptionsAnswer"];
export type ExplainAnswer = Schemas["ExplainAnswer"];
export type Finding = Schemas["Finding"];
export type Forecast = Schemas["Forecast"];
export type FrequencyRow = Schemas["FrequencyRow"];
export type GroupedSeries = Schemas["GroupedSeries"];
export type GroupedSummary = Schemas["GroupedSummary"];
export type DoctorAnswer = Schemas["DoctorAnswer"];
/** The level of a store, which notes do not change. */
export type Level = DoctorAnswer["level"];
export type Mark = Schemas["Mark"];
export type Message = Schemas["Message"];
export type MessagesAnswer = Schemas["MessagesAnswer"];
export type NamesAnswer = Schemas["NamesAnswer"];
export type Numbers = Schemas["OverviewNumbers"];
export type OverviewAnswer = Schemas["OverviewAnswer"];
export type RoutesAnswer = Schemas["RoutesAnswer"];
export type Part = Schemas["Part"];
export type Route = Schemas["Route"];
/** The samples of a chart. */
export type Series = Omit<Schemas["GroupedSeries"], "labels">;
export type SeriesAnswer = Schemas["SeriesAnswer"];
export type Span = Schemas["Span"];
export type Statement = Schemas["Statement"];
export type StatementsAnswer = Schemas["StatementsAnswer"];
export type StatusAnswer = Schemas["StatusAnswer"];
export type StoreInfo = Schemas["StoreInfo"];
export type Summary = Schemas["SummaryRow"];
export type SummaryAnswer = Schemas["SummaryAnswer"];
export type Task = Schemas["Task"];
export type JobsAnswer = Schemas["JobsAnswer"];
export type AlertAnswer = Schemas["AlertAnswer"];
export type AlertRule = Schemas["RuleStatus"];
export type AlertStatus = Schemas["AlertStatus"];
export type AlertsAnswer = Schemas["AlertsAnswer"];
export type MaintenanceStatus = Schemas["MaintenanceStatus"];
export type VerdictAnswer = Schemas["VerdictAnswer"];
export type VerdictMetric = Schemas["VerdictMetric"];
export type VerdictRow = Schemas["VerdictRow"];
export type ViewsAnswer = Schemas["ViewsAnswer"];
export type Writer = Schemas["WriterRow"];
