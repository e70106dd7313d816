// Made by `npm run types` from openapi.json; not to be edited.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description One alert: a rule, or the rule for one value of its label. */
        AlertStatus: {
            name: string;
            /** @description The rule's labels and the value's. */
            labels: {
                [key: string]: string;
            };
            /** @description The value of the rule's label; null for a rule without `by`. */
            label_value: string | null;
            /** @enum {string} */
            status: "firing" | "pending" | "ok";
            /** @description Since when, Unix seconds; null if it has never been anything but ok. */
            since: number | null;
            /** @description The number that was compared last, and a sentence about it. */
            value: number | null;
            detail: string;
            /** @description Why the condition could not be evaluated last; "": it could. */
            unknown: string;
            /** @description The ID of a silence that applies; "" if none does. */
            silence: string;
            /** @description Whether a maintenance window applies. */
            maintenance: boolean;
        };
        /** @description /api/alerts. */
        AlertsAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description Whether an evaluator holds the lease. */
            running: boolean;
            /** @description When the rules were evaluated last, and seconds between two cycles; null if they never were. */
            evaluated: number | null;
            interval: number | null;
            /** @description Alerts that fire. */
            firing: number;
            /** @description Those that fire first. */
            rules: components["schemas"]["RuleStatus"][];
            silences: components["schemas"]["Silence"][];
            maintenance: components["schemas"]["MaintenanceStatus"][];
            /** @description Changes, the newest first; notices that are not delivered yet. */
            transitions: components["schemas"]["Transition"][];
            undelivered: components["schemas"]["Notice"][];
        };
        /** @description A precision that keeps both the window and its baseline. */
        Alternative: {
            /** @description Interval width, seconds. */
            precision: number;
            /** @description Start of the oldest interval that it keeps, Unix seconds. */
            reaches: number;
        };
        /** @description A finished interval outside its expected range. */
        Anomaly: {
            /** @description Start of the interval, Unix seconds. */
            start: number;
            /** @description Its value. */
            value: number;
            /** @description Lower end of the expected range. */
            low: number;
            /** @description Median of the expected range. */
            mid: number;
            /** @description Upper end of the expected range. */
            high: number;
            /** @description Distance from the mean of the values before it, in standard deviations of these. */
            strength: number;
        };
        /** @description The fields of every answer. */
        Answer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description A route or a task that sends a statement. */
        Caller: {
            /** @enum {string} */
            kind: "route" | "task";
            name: string;
            /** @description Executions of the statement by it. */
            count: number;
        };
        /** @description A log pattern that is new, comes far more often than before, or stopped. */
        ChangeRow: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
            /**
             * @description How it changed: "new", "spiking" or "gone".
             * @enum {string}
             */
            kind: "new" | "spiking" | "gone";
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number;
        };
        /** @description The series that have one value of a label, before and after. */
        ChangedGroup: {
            /** @description The name of the label. */
            label: string;
            /** @description null: without this label. */
            value: string | null;
            /** @description Its count, error rate or p95 in the baseline, a count scaled to the length of the window. null if there were no events. */
            before: number | null;
            /** @description The same in the window. */
            after: number | null;
            /** @description Its part of the total's change: for counts `after - before`; for an error rate the sum of both effects; for a p95 the total's p95 less the same with this group as in the baseline. */
            change: number;
            /** @description The same as a share of the total's change; null where that is 0, and of a p95. */
            share: number | null;
            /** @description For an error rate: the effect of the group's own error rate on the total. */
            rate_effect: number | null;
            /** @description For an error rate: the effect of the group's share of requests on the total. */
            mix_effect: number | null;
            /** @description Events in the baseline, unscaled: requests of an error rate, values of a p95. */
            count_before: number;
            /** @description The same in the window. */
            count: number;
            /** @description Whether the change is beyond noise, and not that of another named group. */
            named: boolean;
        };
        /** @description The groups of one label. Changes of different labels must not be added. */
        ChangedLabel: {
            /** @description The name of the label. */
            label: string;
            /** @description The largest changes first, named ones before all others. */
            groups: components["schemas"]["ChangedGroup"][];
            /** @description How many groups there are. */
            of: number;
            /** @description The summed change of the groups that are not listed; null of a p95. */
            rest: number | null;
        };
        /** @description One measure of the last five complete minutes, and its expected range. */
        Check: {
            /**
             * @description The measure.
             * @enum {string}
             */
            measure: "requests" | "error rate" | "p95" | "count";
            /** @description The series that it is made of. */
            name: string;
            /** @description Explains the value. */
            explain: components["schemas"]["ExplainLink"];
            /** @description The unit of `value` and of the range. */
            unit: string;
            /**
             * @description Whether the value is within, above or below the expected range.
             * @enum {string}
             */
            state: "usual" | "high" | "low" | "unknown";
            /** @description Why it is unknown. */
            reason: string;
            /** @description Its value; null if there were no events. */
            value: number | null;
            /** @description Lower end of the expected range; null if unknown. */
            low: number | null;
            /** @description The usual value; null if unknown. */
            mid: number | null;
            /** @description Upper end of the expected range; null if unknown. */
            high: number | null;
            /** @description Events within the window. */
            count: number;
            /** @description Interval width of the baseline, seconds. */
            precision: number;
            /** @description Start of the baseline, Unix seconds, included. */
            against_since: number;
            /** @description End of the baseline, Unix seconds, excluded. */
            against_until: number;
            /** @description How many intervals the baseline has. */
            intervals: number;
            /** @description Since when the value has been out of its range, Unix seconds. */
            began: number | null;
            /** @description The newest mark from five minutes before that moment on. */
            mark: components["schemas"]["Mark"] | null;
            /** @description The groups that account for it: see Explanation.causes. */
            causes: components["schemas"]["ChangedGroup"][];
        };
        /** @description The cleaner. */
        Cleaner: {
            /** @description When its last pass ended. */
            ended: number | null;
        };
        /** @description A series as a chart draws it; the p95 of a histogram. */
        Curve: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            /** @description Width of an interval, seconds. */
            precision: number;
            /** @description Start of the interval of the first value; the end of the window if there are no values. */
            start: number;
            values: (number | null)[];
            /** @description Whether the newest interval is still running. */
            partial: boolean;
            /** @description For a sum of several series: how many were summed, and how many there are. */
            examined: number;
            of: number;
        };
        /** @description Mean time per request that is spent in the database, seconds. */
        DatabaseTime: {
            /** @description The series: `http_request_db_seconds`. */
            name: string;
            /** @description Mean seconds in the baseline; null if there were no requests. */
            before: number | null;
            /** @description Mean seconds in the window; null if there were no requests. */
            after: number | null;
            /** @description `after - before`, seconds; null if one of them is. */
            change: number | null;
            /** @description As a share of the response time in the baseline, 0 to 1. */
            share_before: number | null;
            /** @description As a share of the response time in the window, 0 to 1. */
            share: number | null;
        };
        /** @description /api/detail. */
        DetailAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            name: string;
            /**
             * @description "" if nothing is stored under this name yet.
             * @enum {string}
             */
            kind: "counter" | "gauge" | "histogram" | "";
            /** @description Unit of the values, by the end of the name: seconds, bytes …; "" if unknown. */
            unit: string;
            /** @description All-time total; null if that is not kept. */
            total: number | null;
            window: components["schemas"]["Span"];
            precisions: components["schemas"]["Curve"][];
            labels: components["schemas"]["Label"][];
            /** @description The label sets of its name, the busiest first; how many there are, how many were looked at. */
            siblings: components["schemas"]["Sibling"][];
            siblings_of: number;
            siblings_examined: number;
            /** @description For a sum of label sets: how many were summed; else 0. */
            added: number;
            summary: components["schemas"]["Summary"] | null;
            marks: components["schemas"]["Mark"][];
            forecast: components["schemas"]["Forecast"] | null;
            /** @description Hourly samples, for the matrix of days and hours. */
            hours: components["schemas"]["Curve"] | null;
        };
        /** @description /api/doctor. */
        DoctorAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @enum {string} */
            level: "ok" | "warn" | "fail";
            location: string;
            /**
             * @description The server that is read; a replica may lag.
             * @enum {string}
             */
            read_from: "primary" | "replica";
            prefix: string;
            server: string;
            version: string;
            clock_difference: number;
            /** @description Precision -> samples. */
            retention: {
                [key: string]: number;
            };
            histogram_retention: {
                [key: string]: number;
            };
            /** @description Precision -> counters. */
            series: {
                [key: string]: number;
            };
            /** @description Index entries of gauges and histograms, and loggers. */
            others: {
                [key: string]: number;
            };
            /** @description By kind; null if the server does not report it. */
            bytes: {
                [key: string]: number | null;
            };
            estimated: boolean;
            writers: components["schemas"]["Writer"][];
            findings: components["schemas"]["Finding"][];
            cleaner: components["schemas"]["Cleaner"];
        };
        /** @description Every answer other than 2xx. */
        ErrorAnswer: {
            error: components["schemas"]["Problem"];
        };
        /** @description /api/exception. */
        ExceptionAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            precision: number;
            start: number;
            end: number;
            kept_since: number;
            /** @description null if the group is not kept. */
            exception: components["schemas"]["ExceptionSummary"] | null;
        };
        /** @description A group of exceptions that is new, has vanished, or comes at another rate. */
        ExceptionChange: {
            /** @description As in Meter.exceptions(). */
            id: string;
            /** @description Module and qualified name of the exception's class; built-in types without a module. */
            type: string;
            /** @description Text of the newest exception, without secrets. */
            message: string;
            /** @description Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback. */
            place: string;
            /**
             * @description How its rate changed.
             * @enum {string}
             */
            kind: "new" | "more" | "fewer" | "vanished";
            /** @description Exceptions in the baseline, scaled to the length of the window. */
            before: number;
            /** @description Exceptions in the window. */
            count: number;
            /** @description Time of the first one ever, Unix seconds. */
            first: number;
            /** @description Time of the last one ever, Unix seconds. */
            last: number;
        };
        /** @description Groups of exceptions whose rate changed, new ones first, then the largest changes. */
        ExceptionChanges: {
            /** @description The groups whose rate changed. */
            groups: components["schemas"]["ExceptionChange"][];
            /** @description Interval width of their counts, which may be wider than that of the windows. All intervals that touch the window count as part of it. */
            precision: number | null;
            /** @description Why they were not compared; "" if they were. */
            reason: string;
        };
        /** @description How often the exceptions of a group came from one route, or from one release. */
        ExceptionShare: {
            /** @description A route, the name of a task, or a release; "(other)": all beyond the limit. */
            name: string;
            /** @description The number of exceptions. */
            count: number;
            /** @description Time of the first one, Unix seconds. */
            first: number;
            /** @description Time of the last one, Unix seconds. */
            last: number;
        };
        /** @description Exceptions of one type and origin. */
        ExceptionSummary: {
            /** @description The same in every process and release. */
            id: string;
            /** @description Module and qualified name, `shop.errors.PaymentFailed`; built-in types without a module. */
            type: string;
            /** @description Text of the newest exception, without secrets. */
            message: string;
            /** @description Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback. */
            place: string;
            /** @description Module and qualified name of its function; "" without a traceback. */
            function: string;
            /** @description The end of the pattern of log messages with this exception. */
            log_place: string;
            /** @description Number of exceptions in the window. */
            count: number;
            /** @description Number of exceptions ever. */
            total: number;
            /** @description Time of the first one ever, Unix seconds. */
            first: number;
            /** @description Time of the last one ever, Unix seconds. */
            last: number;
            /** @description Whether the first one is in the window. */
            is_new: boolean;
            /** @description Counts by interval in the window. */
            series: components["schemas"]["Series"];
            /** @description Ever, the most frequent first. */
            routes: components["schemas"]["ExceptionShare"][];
            /** @description Ever, the last seen first. */
            releases: components["schemas"]["ExceptionShare"][];
            /** @description Frames, messages and causes of the newest exception, without secrets. "" in a list. */
            traceback: string;
        };
        /** @description /api/exceptions. */
        ExceptionsAnswer: {
            /** @description Width of the intervals, seconds. */
            precision: number;
            /** @description Start of the window, Unix seconds, included. */
            start: number;
            /** @description End of the window, Unix seconds, excluded. */
            end: number;
            /** @description Start of the oldest interval that is kept at this precision. */
            kept_since: number;
            /** @description Exceptions in the window, of all groups that match, also of those beyond the limit. */
            count: number;
            /** @description Number of these groups. */
            found: number;
            /** @description How many of these groups are new in the window. */
            new: number;
            /** @description Exceptions in the window that are in no group, because there were too many groups. */
            other: number;
            /** @description Groups that were ever removed to make room for new ones. */
            evicted: number;
            /** @description The groups of this page of the list. */
            groups: components["schemas"]["ExceptionSummary"][];
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description /api/explain. */
        ExplainAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description The name of the series. */
            name: string;
            /** @description The labels that the series were selected by. */
            labels: {
                [key: string]: string;
            };
            /**
             * @description The measure that was compared.
             * @enum {string}
             */
            measure: "count" | "error rate" | "p95";
            /** @description The unit of `before`, `after` and `change`. */
            unit: string;
            /**
             * @description `not kept`: no precision keeps both windows; `no data`: there are no events to compare.
             * @enum {string}
             */
            state: "compared" | "not kept" | "no data";
            /** @description Why nothing was compared; "" if it was. */
            reason: string;
            /** @description The result in one sentence. */
            sentence: string;
            /** @description The pieces of the sentence. */
            parts: components["schemas"]["Part"][];
            /** @description Interval width of both windows, seconds; null if no precision keeps them. */
            precision: number | null;
            /** @description Start of the oldest interval that this precision keeps, Unix seconds. */
            reaches: number | null;
            /** @description Start of the compared window, on the edge of an interval, Unix seconds, included. */
            since: number;
            /** @description End of the same, excluded. */
            until: number;
            /** @description Start of the requested window, Unix seconds. */
            asked_since: number;
            /** @description End of the requested window, Unix seconds. */
            asked_until: number;
            /**
             * @description How the baseline was chosen.
             * @enum {string}
             */
            against: "previous" | "yesterday" | "last-week" | "custom";
            /** @description Start of the compared baseline, Unix seconds, included. */
            against_since: number;
            /** @description End of the same, excluded. */
            against_until: number;
            /** @description If `not kept`: precisions that keep both windows, with edges rounded to their intervals. */
            alternatives: components["schemas"]["Alternative"][];
            /** @description The total in the baseline; a count is scaled to the length of the window. null if there were no events. */
            before: number | null;
            /** @description The total in the window; null if there were no events. */
            after: number | null;
            /** @description `after - before`; null if one of them is. */
            change: number | null;
            /** @description Events in the baseline, unscaled: requests of an error rate, values of a p95. */
            count_before: number;
            /** @description The same in the window. */
            count: number;
            /** @description Whether the total changed and no group is named. */
            even: boolean;
            /** @description Whether there were enough intervals to estimate noise; if not, there are no causes. */
            judged: boolean;
            /** @description Why noise could not be estimated; "" if it was. */
            judged_reason: string;
            /** @description Groups whose change is beyond noise, the main one first. Each change is named once, by the label that fits it best. */
            causes: components["schemas"]["ChangedGroup"][];
            /** @description The labels, with the groups of each. */
            dimensions: components["schemas"]["ChangedLabel"][];
            /** @description Log patterns that are new, or have vanished. */
            messages: components["schemas"]["PatternChanges"];
            /** @description Groups of exceptions whose rate changed. */
            exceptions: components["schemas"]["ExceptionChanges"];
            /** @description Marks within the window, and within the baseline if it ends where the window begins. */
            marks: components["schemas"]["Mark"][];
            /** @description Time that was spent in the database; null if it is not recorded. */
            database: components["schemas"]["DatabaseTime"] | null;
            /** @description Data that was skipped, and why, in words. */
            not_compared: string[];
        };
        /** @description The arguments of explain() that explain a check's value. */
        ExplainLink: {
            /** @description The series. */
            name: string;
            /** @description The failing label values, LABEL=VALUE, if the measure is an error rate. */
            failing: string[];
        };
        /** @description The result of one check. */
        Finding: {
            /** @enum {string} */
            level: "ok" | "note" | "warn" | "fail";
            topic: string;
            text: string;
            /** @description What to do about it; "" if nothing. */
            fix: string;
        };
        /** @description The expected range of a series, past and future. */
        Forecast: {
            /** @description The name of the series. */
            name: string;
            /**
             * @description The kind of the series.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description Interval width, seconds. */
            precision: number;
            /** @description A description of the method, for people. */
            method: string;
            /** @description The part of intervals that should be within the expected range, 0 to 1. */
            level: number;
            /** @description The value of the current interval so far, which is not compared; null if there is none. */
            running: number | null;
            /** @description Finished intervals, oldest first, from the first one with enough before it. Without gaps. */
            past: components["schemas"]["ForecastCheck"][];
            /** @description The next intervals, the current one first. */
            ahead: components["schemas"]["ForecastPoint"][];
            /** @description Why there is no expected range; "" if there is one. */
            reason: string;
            /** @description Intervals of `past` outside their range, the strongest first. */
            anomalies: components["schemas"]["Anomaly"][];
        };
        /** @description /api/forecast. */
        ForecastAnswer: {
            /** @description The name of the series. */
            name: string;
            /**
             * @description The kind of the series.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description Interval width, seconds. */
            precision: number;
            /** @description A description of the method, for people. */
            method: string;
            /** @description The part of intervals that should be within the expected range, 0 to 1. */
            level: number;
            /** @description The value of the current interval so far, which is not compared; null if there is none. */
            running: number | null;
            /** @description Finished intervals, oldest first, from the first one with enough before it. Without gaps. */
            past: components["schemas"]["ForecastCheck"][];
            /** @description The next intervals, the current one first. */
            ahead: components["schemas"]["ForecastPoint"][];
            /** @description Why there is no expected range; "" if there is one. */
            reason: string;
            /** @description Intervals of `past` outside their range, the strongest first. */
            anomalies: components["schemas"]["Anomaly"][];
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description A finished interval, and the range that was expected before it began. */
        ForecastCheck: {
            /** @description Start of the interval, Unix seconds. */
            start: number;
            /** @description Its value. */
            value: number;
            /** @description Lower end of the expected range. */
            low: number;
            /** @description Median of the expected range. */
            mid: number;
            /** @description Upper end of the expected range. */
            high: number;
            /** @description Whether the value is outside the expected range; false for the first intervals of a series. */
            outside: boolean;
        };
        /** @description The expected range of an interval that is not over. */
        ForecastPoint: {
            /** @description Start of the interval, Unix seconds. */
            start: number;
            /** @description Lower end of the expected range; of a counter a whole number, never below 0. */
            low: number;
            /** @description The median: the value is as likely above as below. */
            mid: number;
            /** @description Upper end of the expected range; of a counter a whole number. */
            high: number;
        };
        /** @description The frequency of a log pattern. */
        Frequency: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
        };
        /** @description The frequency of a log pattern in the last hour, and in the hour before. */
        FrequencyRow: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number;
        };
        /** @description Series that have the same values of some labels, aggregated. */
        GroupedSeries: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            /** @description Width of an interval, seconds. */
            precision: number;
            /** @description Start of the interval of the first value; the end of the window if there are no values. */
            start: number;
            values: (number | null)[];
            /** @description Whether the newest interval is still running. */
            partial: boolean;
            /** @description The labels of `by`; null for series without the label. */
            labels: {
                [key: string]: string | null;
            };
        };
        /** @description The summary of histograms that have the same values of some labels. */
        GroupedSummary: {
            name: string;
            count: number;
            total: number | null;
            mean: number | null;
            stddev: number | null;
            low: number | null;
            high: number | null;
            /** @description "0.95" -> the 95th percentile. */
            quantiles: {
                [key: string]: number | null;
            };
            share_above: number | null;
            /** @description Lower edge, upper edge, count; ascending. */
            buckets: [
                number,
                number,
                number
            ][];
            over_time: components["schemas"]["OverTime"] | null;
            /** @description The labels of `by`; null for series without the label. */
            labels: {
                [key: string]: string | null;
            };
        };
        /** @description Requests or events per second. */
        Hits: {
            value: number | null;
            before: number | null;
            /** @description Events of the rate, and of the one before. */
            count: number;
            count_before: number | null;
            /** @description The counter. */
            name: string | null;
            sampled: boolean;
        };
        /** @description /api/jobs. */
        JobsAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            window: components["schemas"]["Span"];
            /** @description Rows that match. */
            found: number;
            /** @description Executions and seconds of all rows. */
            count: number;
            total: number;
            /** @description Label sets of durations that were read, and that there are. */
            examined: number;
            of: number;
            values_start: number;
            values_precision: number;
            rows: components["schemas"]["Task"][];
            /** @description Failed runs of all tasks. */
            failed: number;
        };
        /** @description A label, and its most frequent values. */
        Label: {
            label: string;
            values: components["schemas"]["LabelValue"][];
            /** @description How many values there are. */
            of: number;
        };
        /** @description A value of a label, and its count within the window. */
        LabelValue: {
            value: string;
            count: number;
            share: number;
        };
        /** @description /healthz. */
        LivenessAnswer: {
            /** @enum {string} */
            status: "ok" | "unavailable";
        };
        /** @description A pattern of log messages that is new, or has vanished. */
        LogPattern: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description The part that the messages have in common. */
            pattern: string;
            /** @description One of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description When it was first seen, Unix seconds. */
            first: number;
            /** @description When it was last seen, Unix seconds. */
            last: number;
            /** @description Messages in the window if it is new, in the baseline if it has vanished; null if unknown. */
            count: number | null;
        };
        /** @description A logger and a severity of stored messages. */
        LogSource: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description The time of the last message, Unix seconds. */
            last: number;
        };
        /** @description Errors of the last hour, and of the hour before; of how many loggers, of how many. */
        Logged: {
            value: number | null;
            before: number | null;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number | null;
            /** @description Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC. */
            sliding: boolean;
            examined: number;
            of: number;
        };
        /** @description A maintenance window: alerts fire, but nobody is notified. */
        MaintenanceStatus: {
            /** @description Names of alerts, with * and ?. */
            alerts: string[];
            /** @description Days of the week, 0 is Monday, and minutes of the day, UTC; the end may be on the next day. */
            days: number[];
            begin: number;
            end: number;
            /** @description Whether it is now. */
            active: boolean;
        };
        /** @description A moment that explains a change in the metrics: a deploy, for instance. */
        Mark: {
            /** @description Unix seconds. */
            time: number;
            /** @description Its text, at most 100 characters. */
            label: string;
        };
        /** @description /api/marks. */
        MarksAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            marks: components["schemas"]["Mark"][];
        };
        /** @description One log message. */
        Message: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description Unix seconds; null if it is not stored. */
            time: number | null;
            /** @description Without secrets; may hold newlines. Clean it before you print messages of others. */
            text: string;
        };
        /** @description /api/messages. */
        MessagesAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            changes: components["schemas"]["ChangeRow"][];
            frequent: components["schemas"]["FrequencyRow"][];
            recent: components["schemas"]["Message"][];
            loggers: components["schemas"]["LogSource"][];
            /** @description How many loggers and severities there are, how many of them these are of, and how many of these are compared by clock hours. */
            sources: number;
            compared: number;
            clock_hours: number;
            /** @description With since, until or filter: the window, by default the last hour, which is compared with as long a time before it; and the time from which patterns are counted. Changes are patterns that were first seen in the window. null: the last hour is compared with the one before. */
            since: number | null;
            until: number | null;
            counted_since: number | null;
        };
        /** @description A series, or all label sets of a name, within the window. */
        MetricRow: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            /** @description Number of label sets. */
            series: number;
            /** @description false if there are more series of the last name than the response holds. */
            complete: boolean;
            /** @description Events within the window, and within the preceding one of the same length; for a gauge, the number of samples. null if the preceding window is no longer stored. */
            count: number;
            before: number | null;
            /** @description The mean of a histogram, the newest sample of a gauge. */
            value: number | null;
            /** @description The 95th percentile of a histogram within the window, and within as long a time before; null for others, and where it was not read: a list reads 50 series at most, those rows first that have the fewest. */
            p95: number | null;
            p95_before: number | null;
            /** @description By intervals: counts, samples of a gauge, or the 95th percentiles of a histogram, at most 24; null for gaps. */
            values: (number | null)[];
            /** @description Start of the first interval, and the width of each, seconds. */
            start: number;
            precision: number;
            partial: boolean;
        };
        /** @description /api/metrics. */
        MetricsAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            window: components["schemas"]["Span"];
            rows: components["schemas"]["MetricRow"][];
            /** @description Series that begin as the pattern does; how many were looked at; and rows there are of those. */
            total: number;
            examined: number;
            found: number;
            /** @description When the series were ranked, of which there are over 1,000: the first 1,000 rows are there, with figures of now. null where all were read for this answer; and where examined is less than total, until they have been ranked. */
            ranked_at: number | null;
        };
        /** @description /api/names. */
        NamesAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            names: string[];
            /** @description How many match, of which these are the first. */
            total: number;
        };
        /** @description A baseline that is not kept. */
        NotKept: {
            /**
             * @description Whose retention is too short.
             * @enum {string}
             */
            of: "counters" | "histograms";
            /** @description Start of the baseline, Unix seconds. */
            since: number;
            /** @description Start of the oldest interval that is kept, Unix seconds. */
            oldest: number;
            /** @description The command that keeps as much from now on; "" if no retention does. */
            command: string;
        };
        /** @description A notification that is not delivered yet. */
        Notice: {
            /** @description Order in which notices were made. */
            number: number;
            /** @description The same on every attempt, so that receivers can recognize a repetition. */
            key: string;
            /** @description The same for all notices of one firing. */
            incident: string;
            name: string;
            notifier: string;
            /** @description "firing", "resolved" or "reminder". */
            status: string;
            severity: string;
            message: string;
            detail: string;
            value: number | null;
            labels: {
                [key: string]: string;
            };
            /** @description When the alert began to fire, or was resolved; and when this notice was made. */
            since: number;
            time: number;
            attempts: number;
            /** @description Not before this time. */
            due: number;
            /** @description Why the last attempt failed. */
            error: string;
        };
        /** @description The five numbers, each against the window before. */
        Numbers: {
            hits: components["schemas"]["Hits"];
            errors: components["schemas"]["Share"];
            p95: components["schemas"]["Percentile"];
            slowest: components["schemas"]["Slowest"];
            logged: components["schemas"]["Logged"];
        };
        /** @description Runs of a task that ended in one state. */
        Outcome: {
            state: string;
            count: number;
            failed: boolean;
        };
        /** @description A summary per interval; null for intervals without values. */
        OverTime: {
            start: number;
            partial: boolean;
            count: number[];
            mean: (number | null)[];
            quantiles: {
                [key: string]: (number | null)[];
            };
        };
        /** @description /api/overview. */
        OverviewAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            store: components["schemas"]["StoreInfo"];
            window: components["schemas"]["Span"];
            numbers: components["schemas"]["Numbers"];
            chart: components["schemas"]["Curve"][];
            /** @description The expected range of the first curve of the chart, if that is a counter. */
            expected: components["schemas"]["Forecast"] | null;
            marks: components["schemas"]["Mark"][];
            routes: components["schemas"]["OverviewRoutes"];
            messages: components["schemas"]["OverviewMessages"];
            counters: components["schemas"]["OverviewCounters"];
            health: components["schemas"]["OverviewHealth"];
        };
        /** @description The busiest counters, all label sets of a name in one. */
        OverviewCounters: {
            rows: components["schemas"]["MetricRow"][];
            /** @description Names that there are, of those series that were looked at; and series that there are. */
            found: number;
            total: number;
            examined: number;
            /** @description When the series were ranked, of which there are over 1,000. null where all were read for this answer; and where examined is less than total, until they have been ranked. */
            ranked_at: number | null;
        };
        /** @description Health of the store. */
        OverviewHealth: {
            /** @enum {string} */
            level: "ok" | "warn" | "fail";
            findings: components["schemas"]["Finding"][];
            /** @description Number of writing processes. */
            writers: number;
        };
        /** @description Changes in the log, and the most frequent patterns. */
        OverviewMessages: {
            changes: components["schemas"]["ChangeRow"][];
            frequent: components["schemas"]["FrequencyRow"][];
            sources: number;
            compared: number;
            /** @description How many of these are compared by clock hours; the others by sliding hours. */
            clock_hours: number;
        };
        /** @description The busiest routes. */
        OverviewRoutes: {
            rows: components["schemas"]["Route"][];
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            examined: number;
            sampled: boolean;
            values_start: number;
            values_precision: number;
        };
        /** @description A piece of a sentence. The texts of all pieces, joined, are the sentence. */
        Part: {
            /**
             * @description What the piece is about, so that a page can link or highlight it.
             * @enum {string}
             */
            kind: "text" | "metric" | "value" | "usual" | "group" | "mark" | "time" | "baseline";
            /** @description Its text. */
            text: string;
            /** @description The metric, for `metric` and `group`. */
            name: string | null;
            /** @description The label and its value, for `group`; a value of null means "without this label". */
            label: string | null;
            /** @description The value of the label. */
            value: string | null;
            /** @description Unix seconds, for `mark` and `time`. */
            time: number | null;
        };
        /** @description Log patterns of the window that the baseline lacks, and the reverse. */
        PatternChanges: {
            /** @description Patterns that are new in the window. */
            new: components["schemas"]["LogPattern"][];
            /** @description Patterns of the baseline that have vanished. */
            vanished: components["schemas"]["LogPattern"][];
            /** @description Why they were not compared; "" if they were. */
            reason: string;
        };
        /** @description The p95 response time of all requests. */
        Percentile: {
            value: number | null;
            before: number | null;
            /** @description Since when durations are known, Unix seconds; null: throughout the window. */
            since: number | null;
            /** @description Whether only some requests were timed. */
            sampled: boolean;
        };
        /** @description An error and its fix. */
        Problem: {
            code: string;
            message: string;
            fix: string;
        };
        /** @description One row of a ranking. */
        Ranked: {
            /** @description A label's value, or a series' name. null stands for "without this label". */
            key: string | null;
            /** @description The number of events or values within the window. */
            count: number;
            /** @description Its part of everything ranked, 0 to 1: of the counts, or of the totals if these are ranked; of its own count if failures are ranked. */
            share: number;
            /** @description The number that ranks it: the count, the failures, or a mean, total or percentile. */
            value: number;
        };
        /** @description A route within a window. */
        Route: {
            route: string;
            count: number;
            /** @description Requests within as long a time before the window; null where nothing keeps it. */
            before: number | null;
            per_second: number;
            /** @description Its share of all requests, 0 to 1. */
            share: number;
            /** @description Requests that failed, and their part of its own, 0 to 1. */
            failed: number;
            failing: number;
            /** @description The mean of its durations, and their p95, seconds; null where none is known. */
            mean: number | null;
            p95: number | null;
            /** @description The sum of its durations, seconds, and its share of that of all routes. */
            total: number | null;
            total_share: number | null;
            /** @description Its counts by intervals, see `RouteTable.values_start` and `values_precision`; null before its first request, nothing if there are too many routes. */
            values: (number | null)[];
        };
        /** @description /api/routes. */
        RoutesAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            rows: components["schemas"]["Route"][];
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            examined: number;
            sampled: boolean;
            values_start: number;
            values_precision: number;
            window: components["schemas"]["Span"];
            /** @description Number of series of durations, and of those with percentiles. */
            timed: number;
            timed_read: number;
        };
        /** @description A rule with its alerts. */
        RuleStatus: {
            name: string;
            /** @description The condition in words, and as PromQL; "" if no evaluator has published the rule. */
            condition: string;
            query: string;
            /** @description The metric without labels; "" if the condition is not about one. */
            metric: string;
            by: string;
            severity: string;
            message: string;
            for_seconds: number;
            keep: number;
            notify: string[];
            labels: {
                [key: string]: string;
            };
            /**
             * @description The status of the alert that is worst off, and why nothing could be evaluated.
             * @enum {string}
             */
            status: "firing" | "pending" | "ok";
            unknown: string;
            /** @description The worst first. For a rule with `by`, only those that are not ok. */
            alerts: components["schemas"]["AlertStatus"][];
            /** @description With `by`: values that are ok, and values beyond the limit, which are not evaluated. */
            ok: number;
            left_out: number;
        };
        /**
         * @description The stored samples of one series at one precision, oldest first, without holes.
         *
         *     A sequence of Sample; `values` are the bare numbers. Intervals without an event after the oldest
         *     sample are 0 for a counter, and null for a gauge. Empty if nothing is stored.
         */
        Series: {
            /** @description The name of the series. */
            name: string;
            /** @description Interval width, seconds. */
            precision: number;
            /** @description Start of the oldest interval, Unix seconds. */
            start: number;
            /** @description The values, one per interval, oldest first. */
            values: number[];
            /** @description Whether the newest interval is the current one, so that its value may grow. */
            partial: boolean;
        };
        /** @description /api/series. */
        SeriesAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            precision: number;
            /** @description The window: [start, end). */
            start: number;
            end: number;
            series: components["schemas"]["GroupedSeries"][];
            /** @description How many series there are, of which these are the busiest. */
            of: number;
        };
        /** @description The share of requests that failed. */
        Share: {
            value: number | null;
            before: number | null;
            /** @description Requests that failed, and before. */
            count: number;
            count_before: number | null;
            /** @description Since when failures are known, Unix seconds; null: throughout the window. */
            since: number | null;
        };
        /** @description A label set of the same name. */
        Sibling: {
            name: string;
            count: number;
            share: number;
        };
        /** @description Alerts that notify nobody until a time. */
        Silence: {
            id: string;
            /** @description Names of alerts, with * and ?. */
            alerts: string;
            /** @description Unix seconds. */
            until: number;
            comment: string;
        };
        /** @description The slowest route. */
        Slowest: {
            value: number | null;
            before: number | null;
            route: string | null;
        };
        /** @description The time that is shown, Unix seconds. */
        Span: {
            precision: number;
            start: number;
            end: number;
            /** @description Interval width of the histograms that belong to it, and where they begin. */
            histograms: number;
            histograms_start: number;
            /** @description Whether a precision keeps the compared period; which, and where the period begins. */
            before: boolean;
            before_precision: number | null;
            before_start: number | null;
            /** @description Seconds from the compared period to the window, 23 to 25 hours from yesterday by local time; null: it is the period right before. */
            shift: number | null;
        };
        /** @description A database statement, by what groups it. */
        Statement: {
            /** @description The stored name of its durations; "" if there are none. */
            series: string;
            /** @description How often it came in the window, and in the compared period; null if that is not kept. */
            count: number;
            before: number | null;
            /** @description The time of all its executions, seconds; and its share of the time of all rows. */
            total: number | null;
            share: number | null;
            mean: number | null;
            p95: number | null;
            /** @description Timed executions per interval of values_precision, from values_start on. */
            values: (number | null)[];
            statement: string;
            errors: number;
            /** @description The most frequent callers, and their number. */
            callers: components["schemas"]["Caller"][];
            callers_of: number;
        };
        /** @description /api/statements. */
        StatementsAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            window: components["schemas"]["Span"];
            /** @description Rows that match. */
            found: number;
            /** @description Executions and seconds of all rows. */
            count: number;
            total: number;
            /** @description Label sets of durations that were read, and that there are. */
            examined: number;
            of: number;
            values_start: number;
            values_precision: number;
            rows: components["schemas"]["Statement"][];
        };
        /** @description /api/status. */
        StatusAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /**
             * @description `unusual` if a check is out of its range, `unknown` if none could be made.
             * @enum {string}
             */
            state: "usual" | "unusual" | "unknown";
            /** @description The result in one sentence. */
            sentence: string;
            /** @description The pieces of the sentence. */
            parts: components["schemas"]["Part"][];
            /** @description Start of the five minutes, Unix seconds, included. */
            since: number;
            /** @description End of the five minutes, Unix seconds, excluded. */
            until: number;
            /** @description The measures that were checked. */
            checks: components["schemas"]["Check"][];
        };
        /** @description The store and its retention. */
        StoreInfo: {
            location: string;
            /**
             * @description The server that is read; a replica may lag.
             * @enum {string}
             */
            read_from: "primary" | "replica";
            prefix: string;
            version: string;
            retention: {
                [key: string]: number;
            };
            histograms: {
                [key: string]: number;
            };
        };
        /** @description The distribution of a histogram within a window. */
        Summary: {
            name: string;
            count: number;
            total: number | null;
            mean: number | null;
            stddev: number | null;
            low: number | null;
            high: number | null;
            /** @description "0.95" -> the 95th percentile. */
            quantiles: {
                [key: string]: number | null;
            };
            share_above: number | null;
            /** @description Lower edge, upper edge, count; ascending. */
            buckets: [
                number,
                number,
                number
            ][];
            over_time: components["schemas"]["OverTime"] | null;
        };
        /** @description /api/summary. */
        SummaryAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            precision: number;
            start: number;
            end: number;
            summaries: components["schemas"]["GroupedSummary"][];
            /** @description How many there are; with `by`, the first 50 are listed. */
            of: number;
        };
        /** @description A background task. */
        Task: {
            /** @description The stored name of its durations; "" if there are none. */
            series: string;
            /** @description How often it came in the window, and in the compared period; null if that is not kept. */
            count: number;
            before: number | null;
            /** @description The time of all its executions, seconds; and its share of the time of all rows. */
            total: number | null;
            share: number | null;
            mean: number | null;
            p95: number | null;
            /** @description Timed executions per interval of values_precision, from values_start on. */
            values: (number | null)[];
            task: string;
            /** @description Runs in the window by outcome, the most frequent first. */
            outcomes: components["schemas"]["Outcome"][];
            /** @description Runs that failed, and their share of all runs. */
            failed: number;
            failing: number;
            /** @description Means of the wait in the queue and of the time in databases, seconds; null if not recorded. */
            wait: number | null;
            database: number | null;
        };
        /** @description /api/top. */
        TopAnswer: {
            /** @description The groups, in the order of the ranking. */
            rows: components["schemas"]["Ranked"][];
            /** @description The number of groups that could be ranked. */
            groups: number;
            /** @description The number of groups that were compared: percentiles are read of a bounded number, those whose mean and spread allow the highest. */
            examined: number;
            /** @description The number of intervals of the window. */
            intervals: number;
            /** @description Whether none of the groups that were not compared can be among the rows. */
            complete: boolean;
            /** @description Groups that were not compared because they have too many series. */
            left_out: (string | null)[];
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description A change of an alert to "firing" or "resolved", recorded once. */
        Transition: {
            name: string;
            status: string;
            /** @description Unix seconds, by the server's clock. */
            time: number;
            severity: string;
            value: number | null;
            detail: string;
        };
        /** @description /api/verdict. */
        VerdictAnswer: {
            /**
             * @description The judgment of the deploy as a whole.
             * @enum {string}
             */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            /** @description One sentence that explains the verdict. */
            reason: string;
            /** @description The mark; null if a time was given. */
            mark: components["schemas"]["Mark"] | null;
            /** @description The moment of the deploy, Unix seconds. */
            since: number;
            /**
             * @description What the time after the deploy was compared with.
             * @enum {string}
             */
            against: "previous" | "yesterday" | "last-week";
            /** @description Interval width of everything that was compared, seconds. */
            precision: number;
            /** @description Fixed times at which the deploy is judged, seconds after the interval of the mark. */
            looks: number[];
            /** @description The newest look that is complete; null if none is. */
            look: number | null;
            /** @description When the next look is complete, Unix seconds; null if this was the last. */
            next_look: number | null;
            /** @description The window after the deploy; null if there is none yet. */
            after: components["schemas"]["VerdictWindow"] | null;
            /** @description The baseline; null if it is unknown. */
            before: components["schemas"]["VerdictWindow"] | null;
            /** @description The baseline that is not kept, if that is why there is no judgment. */
            not_kept: components["schemas"]["NotKept"] | null;
            /** @description The error budget of all looks: the probability of a false alarm. */
            level: number;
            /** @description The number of tests of this look. */
            tests: number;
            /** @description All requests together; null if nothing was compared. */
            overall: components["schemas"]["VerdictRow"] | null;
            /** @description Worse ones first, then better ones, then by requests. */
            routes: components["schemas"]["VerdictRow"][];
            /** @description Routes that there are. */
            routes_of: number;
            /** @description The log patterns that changed. */
            patterns: components["schemas"]["VerdictPatterns"];
            /** @description Other marks within both windows. */
            marks: components["schemas"]["Mark"][];
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description A metric after a deploy, compared with before. */
        VerdictMetric: {
            /**
             * @description The judgment of this metric.
             * @enum {string}
             */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            /** @description Error rate, 0 to 1, or p95, seconds, after the deploy; null if unknown. */
            after: number | null;
            /** @description The same in the baseline; null if unknown. */
            before: number | null;
            /** @description `after / before`; null if unknown or if it was 0 before. */
            ratio: number | null;
            /** @description `after - before`; null if unknown. */
            difference: number | null;
            /** @description Lower end of the 95 % confidence interval of the ratio; null if unknown. */
            low: number | null;
            /** @description Upper end of the same; null if unknown. */
            high: number | null;
            /** @description The probability of such a change without a deploy, one-sided, in the direction of the change. null if it was not tested. */
            p: number | null;
            /** @description The same, adjusted for the number of tests. */
            p_adjusted: number | null;
            /** @description The test, in words; "" if there was none. */
            test: string;
            /** @description Why there is no judgment, or why a significant change is called the same; "" otherwise. */
            reason: string;
        };
        /** @description Log patterns that are new since a deploy, and those that are gone. */
        VerdictPatterns: {
            /** @description false if the deploy is longer ago than counts by five minutes are kept. */
            kept: boolean;
            /** @description Patterns that are new since the deploy. */
            new: components["schemas"]["Frequency"][];
            /** @description Patterns that are gone since the deploy. */
            vanished: components["schemas"]["Frequency"][];
        };
        /** @description A route after a deploy, compared with before. */
        VerdictRow: {
            /** @description null for all requests. */
            route: string | null;
            /**
             * @description The judgment of the route, by both metrics: worse before unknown before better before same.
             * @enum {string}
             */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            /** @description Its requests. */
            requests: components["schemas"]["VerdictTraffic"];
            /** @description Its error rate, 0 to 1. */
            error_rate: components["schemas"]["VerdictMetric"];
            /** @description Its p95, seconds. */
            p95: components["schemas"]["VerdictMetric"];
        };
        /** @description Requests after a deploy and before; reported, never judged. */
        VerdictTraffic: {
            /** @description Requests after the deploy. */
            after: number;
            /** @description Requests in the baseline. */
            before: number;
            /** @description Requests per second after the deploy. */
            after_per_second: number;
            /** @description Requests per second in the baseline. */
            before_per_second: number;
            /** @description The ratio of the rates; null if there were none before. */
            ratio: number | null;
        };
        /** @description A window of time, Unix seconds: [since, until). */
        VerdictWindow: {
            /** @description Its start, included. */
            since: number;
            /** @description Its end, excluded. */
            until: number;
        };
        /** @description /api/views. */
        ViewsAnswer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            database: boolean;
            jobs: boolean;
            exceptions: boolean;
        };
        /** @description A writing process and its last report. */
        Writer: {
            host: string;
            pid: number;
            seen: number;
            alive: boolean;
            instance: number | null;
            last_flush: number | null;
            stored: number;
            buffered: number;
            dropped: number;
            /** @description Reason -> precision -> events. */
            lost: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            troubles: {
                [key: string]: number;
            };
            last_trouble: string;
        };
        /** @description Every answer of Prometheus' API other than 2xx. */
        PrometheusError: {
            /** @enum {string} */
            status: "error";
            /** @enum {string} */
            errorType: "bad_data" | "execution" | "timeout" | "internal" | "not_found" | "unavailable";
            /** @description The problem, and how to fix it. */
            error: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
