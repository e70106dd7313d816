// Made by `npm run types` from openapi.json; not to be edited.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description /api/alert. */
        AlertAnswer: {
            /** @description Those with the largest values, if the alert is of no single value of the label. */
            lines: components["schemas"]["AlertLine"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description How many there are. */
            of: number;
            /** @description The rule; null: no evaluator has published it. */
            rule: components["schemas"]["RuleStatus"] | null;
            /** @description Changes of the alert, or of all alerts of the rule, the newest first. */
            transitions: components["schemas"]["Transition"][];
            window: components["schemas"]["Span"];
        };
        /** @description What a rule compares, for one value of its label. */
        AlertLine: {
            /** @description The value of the rule's label; null for a rule without `by`. */
            label_value: string | null;
            /** @description The values at the end of each interval, the last of which may be running; null: none. */
            values: (number | null)[];
        };
        /** @description One alert: a rule, or the rule for one value of its label. */
        AlertStatus: {
            detail: string;
            /** @description The value of the rule's label; null for a rule without `by`. */
            label_value: string | null;
            /** @description The rule's labels and the value's. */
            labels: {
                [key: string]: string;
            };
            /** @description Whether a maintenance window applies. */
            maintenance: boolean;
            name: string;
            /** @description The ID of a silence that applies; "" if none does. */
            silence: string;
            /** @description Since when, Unix seconds; null if it has never been anything but ok. */
            since: number | null;
            /** @enum {string} */
            status: "firing" | "pending" | "ok";
            /** @description Why the condition could not be evaluated last; "": it could. */
            unknown: string;
            /** @description The number that was compared last, and a sentence about it. */
            value: number | null;
        };
        /** @description /api/alerts. */
        AlertsAnswer: {
            /** @description When the rules were evaluated last, and seconds between two cycles; null if they never were. */
            evaluated: number | null;
            /** @description Alerts that fire. */
            firing: number;
            interval: number | null;
            last_trouble: string;
            maintenance: components["schemas"]["MaintenanceStatus"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description Those that fire first. */
            rules: components["schemas"]["RuleStatus"][];
            /** @description Whether an evaluator holds the lease. */
            running: boolean;
            silences: components["schemas"]["Silence"][];
            /** @description Changes, the newest first; notices that are not delivered yet. */
            transitions: components["schemas"]["Transition"][];
            /** @description Errors of the evaluator itself: "cycle", "rule", "message" or "notice" -> count, since it started; and the text of the last one, "" if there was none. */
            troubles: {
                [key: string]: number;
            };
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
            /** @description Upper end of the expected range. */
            high: number;
            /** @description Lower end of the expected range. */
            low: number;
            /** @description Median of the expected range. */
            mid: number;
            /** @description Start of the interval, Unix seconds. */
            start: number;
            /** @description Distance from the mean of the values before it, in standard deviations of these. */
            strength: number;
            /** @description Its value. */
            value: number;
        };
        /** @description A route or a task that sends a statement. */
        Caller: {
            /** @description Executions of the statement by it. */
            count: number;
            /** @enum {string} */
            kind: "route" | "task";
            name: string;
        };
        /** @description A log pattern that is new, comes far more often than before, or stopped. */
        ChangeRow: {
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /**
             * @description How it changed: "new", "spiking" or "gone".
             * @enum {string}
             */
            kind: "new" | "spiking" | "gone";
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The name of the logger. */
            logger: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
            /** @description The stored patterns of which it is the sum, the most frequent first, if `pattern` stands for several that differ in one word: `order of <…> failed`. Otherwise empty. */
            variants: string[];
        };
        /** @description The series that have one value of a label, before and after. */
        ChangedGroup: {
            /** @description The same in the window. */
            after: number | null;
            /** @description Its count, error rate or p95 in the baseline, a count scaled to the length of the window. null if there were no events. */
            before: number | null;
            /** @description Its part of the total's change: for counts `after - before`; for an error rate the sum of both effects; for a p95 the total's p95 less the same with this group as in the baseline. */
            change: number;
            /** @description The same in the window. */
            count: number;
            /** @description Events in the baseline, unscaled: requests of an error rate, values of a p95. */
            count_before: number;
            /** @description The name of the label. */
            label: string;
            /** @description For an error rate: the effect of the group's share of requests on the total. */
            mix_effect: number | null;
            /** @description Whether the change is beyond noise, and not that of another named group. */
            named: boolean;
            /** @description For an error rate: the effect of the group's own error rate on the total. */
            rate_effect: number | null;
            /** @description The same as a share of the total's change; null where that is 0, and of a p95. */
            share: number | null;
            /** @description null: without this label. */
            value: string | null;
        };
        /** @description The groups of one label. Changes of different labels must not be added. */
        ChangedLabel: {
            /** @description The largest changes first, named ones before all others. */
            groups: components["schemas"]["ChangedGroup"][];
            /** @description The name of the label. */
            label: string;
            /** @description How many groups there are. */
            of: number;
            /** @description The summed change of the groups that are not listed; null of a p95. */
            rest: number | null;
        };
        /** @description A series as a chart draws it; the p95 of a histogram. */
        ChartCurve: {
            /** @description For a sum of several series: how many were summed, and how many there are. */
            examined: number;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            name: string;
            of: number;
            /** @description Whether the newest interval is still running. */
            partial: boolean;
            /** @description Width of an interval, seconds. */
            precision: number;
            /** @description Start of the interval of the first value; the end of the window if there are no values. */
            start: number;
            values: (number | null)[];
        };
        /** @description One measure of the last five complete minutes, and its expected range. */
        Check: {
            /** @description Start of the baseline, Unix seconds, included. */
            against_since: number;
            /** @description End of the baseline, Unix seconds, excluded. */
            against_until: number;
            /** @description When the change began, Unix seconds; null if there is none. */
            began: number | null;
            /** @description The groups that account for most of it, the main one first; `change` is in events. */
            causes: components["schemas"]["ChangedGroup"][];
            /** @description Events within the window. */
            count: number;
            /** @description When it was over, Unix seconds; null if it is not. */
            ended: number | null;
            /** @description Whether all groups changed alike. */
            everywhere: boolean;
            /** @description Explains the value. */
            explain: components["schemas"]["ExplainLink"];
            /** @description Upper end of the expected range; null if unknown. */
            high: number | null;
            /** @description How many intervals the baseline has. */
            intervals: number;
            /** @description The labels of the events; empty for all. Routes and tasks are listed if they stand out. */
            labels: {
                [key: string]: string;
            };
            /** @description Lower end of the expected range; null if unknown. */
            low: number | null;
            /** @description The mark that it began with. */
            mark: components["schemas"]["Mark"] | null;
            /**
             * @description The measure. `client errors` are the share of requests with status 4xx, `failures` that of a task's runs.
             * @enum {string}
             */
            measure: "requests" | "error rate" | "p95" | "count" | "client errors" | "failures";
            /** @description The usual value; null if unknown. */
            mid: number | null;
            /** @description The series that it is made of. */
            name: string;
            /** @description Interval width of the baseline, seconds. */
            precision: number;
            /** @description Why it is unknown. */
            reason: string;
            /** @description Start of the minutes that the value is of, Unix seconds, if these are not all five: those since the change began, up to the end of the five minutes; or the whole of a change that is over, up to `ended`. */
            since: number | null;
            /**
             * @description Whether the value is within, above or below the expected range.
             * @enum {string}
             */
            state: "usual" | "high" | "low" | "unknown";
            /** @description The unit of `value` and of the range. */
            unit: string;
            /** @description Since when there are too few events to judge whether it is over, Unix seconds. */
            unsure_since: number | null;
            /** @description Its value; null if there were no events. */
            value: number | null;
        };
        /** @description The cleaner. */
        CleanerInfo: {
            /** @description When its last pass ended. */
            ended: number | null;
        };
        /**
         * @description The window that a result covers: [since, until), in whole intervals of one width.
         *
         *     Less than the caller named, if the store no longer keeps all of it: see `requested`.
         */
        CoveredWindow: {
            /** @description Interval width, seconds. */
            precision: number;
            /** @description The finest precision that keeps it, seconds; null if there is none, or nothing is missing. */
            reaching: number | null;
            /** @description The start that the caller named, if the precision does not keep that; null otherwise. */
            requested: number | null;
            /** @description Whether its newest interval is the current one, so that more may come. */
            running: boolean;
            /** @description Start, Unix seconds, included. */
            since: number;
            /** @description End, Unix seconds, excluded. */
            until: number;
        };
        /** @description Mean time per request that is spent in the database, seconds. */
        DatabaseTime: {
            /** @description Mean seconds in the window; null if there were no requests. */
            after: number | null;
            /** @description Mean seconds in the baseline; null if there were no requests. */
            before: number | null;
            /** @description `after - before`, seconds; null if one of them is. */
            change: number | null;
            /** @description The series: `http_request_db_seconds`. */
            name: string;
            /** @description As a share of the response time in the window, 0 to 1. */
            share: number | null;
            /** @description As a share of the response time in the baseline, 0 to 1. */
            share_before: number | null;
        };
        /** @description /api/detail. */
        DetailAnswer: {
            /** @description For a sum of label sets: how many were summed; else 0. */
            added: number;
            forecast: components["schemas"]["Forecast"] | null;
            /** @description Hourly samples, for the matrix of days and hours. */
            hours: components["schemas"]["ChartCurve"] | null;
            /**
             * @description "" if nothing is stored under this name yet.
             * @enum {string}
             */
            kind: "counter" | "gauge" | "histogram" | "";
            labels: components["schemas"]["LabelRow"][];
            marks: components["schemas"]["Mark"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            name: string;
            now: number;
            precisions: components["schemas"]["ChartCurve"][];
            /** @description The label sets of its name, the busiest first; how many there are, how many were looked at. */
            siblings: components["schemas"]["Sibling"][];
            siblings_examined: number;
            siblings_of: number;
            summary: components["schemas"]["SummaryRow"] | null;
            /** @description All-time total; null if that is not kept. */
            total: number | null;
            /** @description Unit of the values, by the end of the name: seconds, bytes …; "" if unknown. */
            unit: string;
            window: components["schemas"]["Span"];
        };
        /** @description /api/doctor. */
        DoctorAnswer: {
            /** @description By kind; null if the server does not report it. */
            bytes: {
                [key: string]: number | null;
            };
            cleaner: components["schemas"]["CleanerInfo"];
            clock_difference: number;
            estimated: boolean;
            findings: components["schemas"]["Finding"][];
            histogram_retention: {
                [key: string]: number;
            };
            /** @enum {string} */
            level: "ok" | "warn" | "fail";
            location: string;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description Index entries of gauges and histograms, and loggers. */
            others: {
                [key: string]: number;
            };
            prefix: string;
            /**
             * @description The server that is read; a replica may lag.
             * @enum {string}
             */
            read_from: "primary" | "replica";
            /** @description Precision -> samples. */
            retention: {
                [key: string]: number;
            };
            /** @description Precision -> counters. */
            series: {
                [key: string]: number;
            };
            server: string;
            version: string;
            writers: components["schemas"]["WriterRow"][];
        };
        /** @description The fields of every answer. */
        EndpointAnswer: {
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
        };
        /** @description Every answer other than 2xx. */
        ErrorAnswer: {
            error: components["schemas"]["Problem"];
        };
        /** @description /api/exception. */
        ExceptionAnswer: {
            end: number;
            /** @description null if the group is not kept. */
            exception: components["schemas"]["ExceptionSummary"] | null;
            kept_since: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            precision: number;
            start: number;
        };
        /** @description A group of exceptions that is new, has vanished, or comes at another rate. */
        ExceptionChange: {
            /** @description Exceptions in the baseline, scaled to the length of the window. */
            before: number;
            /** @description Exceptions in the window. */
            count: number;
            /** @description Time of the first one ever, Unix seconds. */
            first: number;
            /** @description As in Meter.exceptions(). */
            id: string;
            /**
             * @description How its rate changed.
             * @enum {string}
             */
            kind: "new" | "more" | "fewer" | "vanished";
            /** @description Time of the last one ever, Unix seconds. */
            last: number;
            /** @description Text of the newest exception, without secrets. */
            message: string;
            /** @description Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback. */
            place: string;
            /** @description Module and qualified name of the exception's class; built-in types without a module. */
            type: string;
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
            /** @description The number of exceptions. */
            count: number;
            /** @description Time of the first one, Unix seconds. */
            first: number;
            /** @description Time of the last one, Unix seconds. */
            last: number;
            /** @description A route, the name of a task, or a release; "(other)": all beyond the limit. */
            name: string;
        };
        /** @description Exceptions of one type and origin. */
        ExceptionSummary: {
            /** @description Whether it has the exceptions of several groups that found no room: all of one type whose innermost function of the application is the same. */
            coarse: boolean;
            /** @description Number of exceptions in the window. */
            count: number;
            /** @description Time of the first one ever, Unix seconds. */
            first: number;
            /** @description Module and qualified name of its function; "" without a traceback. */
            function: string;
            /** @description The same in every process and release. */
            id: string;
            /** @description Whether the first one is in the window. */
            is_new: boolean;
            /** @description Time of the last one ever, Unix seconds. */
            last: number;
            /** @description The end of the pattern of log messages with this exception. */
            log_place: string;
            /** @description Text of the newest exception, without secrets. */
            message: string;
            /** @description Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback. */
            place: string;
            /** @description Ever, the last seen first. */
            releases: components["schemas"]["ExceptionShare"][];
            /** @description Ever, the most frequent first. */
            routes: components["schemas"]["ExceptionShare"][];
            /** @description Counts by interval in the window. */
            series: components["schemas"]["Series"];
            /** @description Number of exceptions ever. */
            total: number;
            /** @description Frames, messages and causes of the newest exception, without secrets. "" in a list. */
            traceback: string;
            /** @description Module and qualified name, `shop.errors.PaymentFailed`; built-in types without a module. */
            type: string;
        };
        /** @description /api/exceptions. */
        ExceptionsAnswer: {
            /** @description Exceptions in the window in coarse groups, of those in `count`. */
            coarse: number;
            /** @description Exceptions in the window, of all groups that match, also of those beyond the limit. */
            count: number;
            /** @description End of the window, Unix seconds, excluded. */
            end: number;
            /** @description Groups that older releases, which still do, removed to make room for new ones. */
            evicted: number;
            /** @description Number of these groups. */
            found: number;
            /** @description The groups of this page of the list. */
            groups: components["schemas"]["ExceptionSummary"][];
            /** @description Start of the oldest interval that is kept at this precision. */
            kept_since: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description How many of these groups are new in the window. */
            new: number;
            now: number;
            /** @description Exceptions in the window that are in no group, because there were too many groups. */
            other: number;
            /** @description Width of the intervals, seconds. */
            precision: number;
            /** @description Start of the window, Unix seconds, included. */
            start: number;
        };
        /** @description /api/explain. */
        ExplainAnswer: {
            /** @description The total in the window; null if there were no events. */
            after: number | null;
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
            /** @description Start of the requested window, Unix seconds. */
            asked_since: number;
            /** @description End of the requested window, Unix seconds. */
            asked_until: number;
            /** @description The total in the baseline; a count is scaled to the length of the window. null if there were no events. */
            before: number | null;
            /** @description Groups whose change is beyond noise, the main one first. Each change is named once, by the label that fits it best. */
            causes: components["schemas"]["ChangedGroup"][];
            /** @description `after - before`; null if one of them is. */
            change: number | null;
            /** @description Whether the total changed beyond noise. */
            changed: boolean;
            /** @description The same in the window. */
            count: number;
            /** @description Events in the baseline, unscaled: requests of an error rate, values of a p95. */
            count_before: number;
            /** @description Time that was spent in the database; null if it is not recorded. */
            database: components["schemas"]["DatabaseTime"] | null;
            /** @description The labels, with the groups of each. */
            dimensions: components["schemas"]["ChangedLabel"][];
            /** @description Whether it did, and all groups alike: no label separates them. */
            even: boolean;
            /** @description Groups of exceptions whose rate changed. */
            exceptions: components["schemas"]["ExceptionChanges"];
            /** @description Whether there were enough intervals to estimate noise; if not, there are no causes. */
            judged: boolean;
            /** @description Why noise could not be estimated; "" if it was. */
            judged_reason: string;
            /** @description The labels that the series were selected by. */
            labels: {
                [key: string]: string;
            };
            /** @description Marks within the window, and within the baseline if it ends where the window begins. */
            marks: components["schemas"]["Mark"][];
            /**
             * @description The measure that was compared.
             * @enum {string}
             */
            measure: "count" | "error rate" | "p95";
            /** @description Log patterns that are new, or have vanished. */
            messages: components["schemas"]["PatternChanges"];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description The name of the series. */
            name: string;
            /** @description Data that was skipped, and why, in words. */
            not_compared: string[];
            now: number;
            /** @description The pieces of the sentence. */
            parts: components["schemas"]["Part"][];
            /** @description Interval width of both windows, seconds; null if no precision keeps them. */
            precision: number | null;
            /** @description Start of the oldest interval that this precision keeps, Unix seconds. */
            reaches: number | null;
            /** @description Why nothing was compared; "" if it was. */
            reason: string;
            /** @description The result in one sentence. */
            sentence: string;
            /** @description Start of the compared window, on the edge of an interval, Unix seconds, included. */
            since: number;
            /**
             * @description `not kept`: no precision keeps both windows; `no data`: there are no events to compare.
             * @enum {string}
             */
            state: "compared" | "not kept" | "no data";
            /** @description Whether it did, some groups otherwise than the others, and none is a cause: one of them stayed while all others changed. */
            uneven: boolean;
            /** @description The unit of `before`, `after` and `change`. */
            unit: string;
            /** @description End of the same, excluded. */
            until: number;
        };
        /** @description The arguments of explain() that explain a check's value. */
        ExplainLink: {
            /** @description The failing label values, LABEL=VALUE, if the measure is an error rate. */
            failing: string[];
            /** @description The series. */
            name: string;
        };
        /** @description The share of requests that failed. */
        FailedShare: {
            before: number | null;
            /** @description Requests that failed, and before. */
            count: number;
            count_before: number | null;
            /** @description The same of the last five complete minutes; null where the window does not end now. */
            recent: number | null;
            /** @description Since when failures are known, Unix seconds; null: throughout the window. */
            since: number | null;
            value: number | null;
        };
        /** @description The result of one check. */
        Finding: {
            /** @description What to do about it; "" if nothing. */
            fix: string;
            /** @enum {string} */
            level: "ok" | "note" | "warn" | "fail";
            text: string;
            topic: string;
        };
        /** @description The expected range of a series, past and future. */
        Forecast: {
            /** @description The next intervals, the current one first. */
            ahead: components["schemas"]["ForecastPoint"][];
            /** @description Intervals of `past` outside their range, the strongest first. */
            anomalies: components["schemas"]["Anomaly"][];
            /**
             * @description The kind of the series.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description The part of intervals that should be within the expected range, 0 to 1. */
            level: number;
            /** @description A description of the method, for people. */
            method: string;
            /** @description The name of the series. */
            name: string;
            /** @description Finished intervals, oldest first, from the first one with enough before it. Without gaps. */
            past: components["schemas"]["ForecastCheck"][];
            /** @description Interval width, seconds. */
            precision: number;
            /** @description Why there is no expected range; "" if there is one. */
            reason: string;
            /** @description The value of the current interval so far, which is not compared; null if there is none. */
            running: number | null;
        };
        /** @description /api/forecast. */
        ForecastAnswer: {
            /** @description The next intervals, the current one first. */
            ahead: components["schemas"]["ForecastPoint"][];
            /** @description Intervals of `past` outside their range, the strongest first. */
            anomalies: components["schemas"]["Anomaly"][];
            /**
             * @description The kind of the series.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description The part of intervals that should be within the expected range, 0 to 1. */
            level: number;
            /** @description A description of the method, for people. */
            method: string;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description The name of the series. */
            name: string;
            now: number;
            /** @description Finished intervals, oldest first, from the first one with enough before it. Without gaps. */
            past: components["schemas"]["ForecastCheck"][];
            /** @description Interval width, seconds. */
            precision: number;
            /** @description Why there is no expected range; "" if there is one. */
            reason: string;
            /** @description The value of the current interval so far, which is not compared; null if there is none. */
            running: number | null;
        };
        /** @description A finished interval, and the range that was expected before it began. */
        ForecastCheck: {
            /** @description Upper end of the expected range. */
            high: number;
            /** @description Lower end of the expected range. */
            low: number;
            /** @description Median of the expected range. */
            mid: number;
            /** @description Whether the value is outside the expected range; false for the first intervals of a series. */
            outside: boolean;
            /** @description Start of the interval, Unix seconds. */
            start: number;
            /** @description Its value. */
            value: number;
        };
        /** @description The expected range of an interval that is not over. */
        ForecastPoint: {
            /** @description Upper end of the expected range; of a counter a whole number. */
            high: number;
            /** @description Lower end of the expected range; of a counter a whole number, never below 0. */
            low: number;
            /** @description The median: the value is as likely above as below. */
            mid: number;
            /** @description Start of the interval, Unix seconds. */
            start: number;
        };
        /** @description The frequency of a log pattern. */
        Frequency: {
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The name of the logger. */
            logger: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
            /** @description The stored patterns of which it is the sum, the most frequent first, if `pattern` stands for several that differ in one word: `order of <…> failed`. Otherwise empty. */
            variants: string[];
        };
        /** @description The frequency of a log pattern in the last hour, and in the hour before. */
        FrequencyRow: {
            /** @description Messages of the hour before; if `sliding`, of the 60 minutes before. */
            before: number;
            /** @description Messages of the current hour; if `sliding`, of the last 60 minutes. */
            count: number;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number;
            /** @description When it was first seen, Unix seconds; null if unknown. */
            first: number | null;
            /** @description When it was last seen, Unix seconds; null if unknown. */
            last: number | null;
            /** @description The name of the logger. */
            logger: string;
            /** @description The part that the messages have in common; "(other)" stands for those above the limit. */
            pattern: string;
            /** @description The last of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description Whether the hours are sliding hours; else clock hours, UTC. */
            sliding: boolean;
            /** @description The stored patterns of which it is the sum, the most frequent first, if `pattern` stands for several that differ in one word: `order of <…> failed`. Otherwise empty. */
            variants: string[];
        };
        /** @description Series that have the same values of some labels, aggregated. */
        GroupedSeries: {
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            /** @description The labels of `by`; null for series without the label. */
            labels: {
                [key: string]: string | null;
            };
            name: string;
            /** @description Whether the newest interval is still running. */
            partial: boolean;
            /** @description Width of an interval, seconds. */
            precision: number;
            /** @description Start of the interval of the first value; the end of the window if there are no values. */
            start: number;
            values: (number | null)[];
        };
        /** @description The summary of histograms that have the same values of some labels. */
        GroupedSummary: {
            /** @description Lower edge, upper edge, count; ascending. */
            buckets: [
                number,
                number,
                number
            ][];
            count: number;
            high: number | null;
            /** @description The labels of `by`; null for series without the label. */
            labels: {
                [key: string]: string | null;
            };
            low: number | null;
            mean: number | null;
            name: string;
            over_time: components["schemas"]["SummaryOverTime"] | null;
            /** @description "0.95" -> the 95th percentile. */
            quantiles: {
                [key: string]: number | null;
            };
            share_above: number | null;
            stddev: number | null;
            total: number | null;
        };
        /** @description Requests or events per second. */
        Hits: {
            before: number | null;
            /** @description Events of the rate, and of the one before. */
            count: number;
            count_before: number | null;
            /** @description The counter. */
            name: string | null;
            /** @description The same of the last five complete minutes; null where the window does not end now. */
            recent: number | null;
            sampled: boolean;
            value: number | null;
        };
        /** @description /api/jobs. */
        JobsAnswer: {
            /** @description Executions and seconds of all rows. */
            count: number;
            /** @description Label sets of durations and counters that were read, and that there are. */
            examined: number;
            /** @description Failed runs of all tasks. */
            failed: number;
            /** @description Rows that match. */
            found: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            of: number;
            rows: components["schemas"]["Task"][];
            total: number;
            values_precision: number;
            values_start: number;
            window: components["schemas"]["Span"];
        };
        /** @description A label, and its most frequent values. */
        LabelRow: {
            label: string;
            /** @description How many values there are. */
            of: number;
            values: components["schemas"]["LabelValue"][];
        };
        /** @description A value of a label, and its count within the window. */
        LabelValue: {
            count: number;
            share: number;
            value: string;
        };
        /** @description /healthz, /-/ready and /-/healthy. */
        LivenessAnswer: {
            /** @enum {string} */
            status: "ok" | "unavailable";
        };
        /** @description A pattern of log messages that is new, or has vanished. */
        LogPattern: {
            /** @description Messages in the window if it is new, in the baseline if it has vanished; null if unknown. */
            count: number | null;
            /** @description When it was first seen, Unix seconds. */
            first: number;
            /** @description When it was last seen, Unix seconds. */
            last: number;
            /** @description The name of the logger. */
            logger: string;
            /** @description The part that the messages have in common. */
            pattern: string;
            /** @description One of the messages, or its beginning; "" if unknown. */
            sample: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
        };
        /** @description A logger and a severity of stored messages. */
        LogSource: {
            /** @description The time of the last message, Unix seconds. */
            last: number;
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
        };
        /** @description Errors of the last hour, and of the hour before; of how many loggers, of how many. */
        LoggedErrors: {
            before: number | null;
            examined: number;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number | null;
            of: number;
            /** @description Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC. */
            sliding: boolean;
            value: number | null;
        };
        /** @description A maintenance window: alerts fire, but nobody is notified. */
        MaintenanceStatus: {
            /** @description Whether it is now. */
            active: boolean;
            /** @description Names of alerts, with * and ?. */
            alerts: string[];
            begin: number;
            /** @description Days of the week, 0 is Monday, and minutes of the day, UTC; the end may be on the next day. */
            days: number[];
            end: number;
        };
        /** @description A moment that explains a change in the metrics: a deploy, for instance. */
        Mark: {
            /** @description Its text, at most 100 characters. */
            label: string;
            /** @description Unix seconds. */
            time: number;
        };
        /** @description /api/marks. */
        MarksAnswer: {
            marks: components["schemas"]["Mark"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
        };
        /** @description One log message. */
        Message: {
            /** @description The name of the logger. */
            logger: string;
            /** @description The severity in stored form, e.g. "error". */
            severity: string;
            /** @description Without secrets; may hold newlines. Clean it before you print messages of others. */
            text: string;
            /** @description Unix seconds; null if it is not stored. */
            time: number | null;
        };
        /** @description /api/messages. */
        MessagesAnswer: {
            changes: components["schemas"]["ChangeRow"][];
            clock_hours: number;
            compared: number;
            counted_since: number | null;
            frequent: components["schemas"]["FrequencyRow"][];
            loggers: components["schemas"]["LogSource"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            recent: components["schemas"]["Message"][];
            /** @description With since, until or filter: the window, by default the last hour, which is compared with as long a time before it; and the time from which patterns are counted. Changes are patterns that were first seen in the window. null: the last hour is compared with the one before. */
            since: number | null;
            /** @description How many loggers and severities there are, how many of them these are of, and how many of these are compared by clock hours. */
            sources: number;
            until: number | null;
        };
        /** @description A series, or all label sets of a name, within the window. */
        MetricRow: {
            before: number | null;
            /** @description false if there are more series of the last name than the response holds. */
            complete: boolean;
            /** @description Events within the window, and within the preceding one of the same length; for a gauge, the number of samples. null if the preceding window is no longer stored. */
            count: number;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            name: string;
            /** @description The 95th percentile of a histogram within the window, and within as long a time before; null for others, and where it was not read: a list reads 50 series at most, those rows first that have the fewest. */
            p95: number | null;
            p95_before: number | null;
            partial: boolean;
            precision: number;
            /** @description Number of label sets. */
            series: number;
            /** @description Start of the first interval, and the width of each, seconds. */
            start: number;
            /** @description The mean of a histogram, the newest sample of a gauge. */
            value: number | null;
            /** @description By intervals: counts, samples of a gauge, or the 95th percentiles of a histogram, at most 24; null for gaps. */
            values: (number | null)[];
        };
        /** @description /api/metrics. */
        MetricsAnswer: {
            examined: number;
            found: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description When the series were ranked, of which there are over 1,000: the first 1,000 rows are there, with figures of now. null where all were read for this answer; and where examined is less than total, until they have been ranked. */
            ranked_at: number | null;
            rows: components["schemas"]["MetricRow"][];
            /** @description Series that begin as the pattern does; how many were looked at; and rows there are of those. */
            total: number;
            window: components["schemas"]["Span"];
        };
        /** @description /api/names. */
        NamesAnswer: {
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            names: string[];
            now: number;
            /** @description How many match, of which these are the first. */
            total: number;
        };
        /** @description A baseline that is not kept. */
        NotKept: {
            /** @description The command that keeps as much from now on; "" if no retention does. */
            command: string;
            /**
             * @description Whose retention is too short.
             * @enum {string}
             */
            of: "counters" | "histograms";
            /** @description Start of the oldest interval that is kept, Unix seconds. */
            oldest: number;
            /** @description Start of the baseline, Unix seconds. */
            since: number;
        };
        /** @description A notification that is not delivered yet. */
        Notice: {
            attempts: number;
            detail: string;
            /** @description Not before this time. */
            due: number;
            /** @description Why the last attempt failed. */
            error: string;
            /** @description The same for all notices of one firing. */
            incident: string;
            /** @description The same on every attempt, so that receivers can recognize a repetition. */
            key: string;
            labels: {
                [key: string]: string;
            };
            message: string;
            name: string;
            notifier: string;
            /** @description Order in which notices were made. */
            number: number;
            severity: string;
            /** @description When the alert began to fire, or was resolved; and when this notice was made. */
            since: number;
            /** @description "firing", "resolved" or "reminder". */
            status: string;
            time: number;
            value: number | null;
        };
        /** @description Runs of a task that ended in one state. */
        Outcome: {
            count: number;
            failed: boolean;
            state: string;
        };
        /** @description /api/overview. */
        OverviewAnswer: {
            chart: components["schemas"]["ChartCurve"][];
            counters: components["schemas"]["OverviewCounters"];
            /** @description The expected range of the first curve of the chart, if that is a counter. */
            expected: components["schemas"]["Forecast"] | null;
            marks: components["schemas"]["Mark"][];
            messages: components["schemas"]["OverviewMessages"];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            numbers: components["schemas"]["OverviewNumbers"];
            routes: components["schemas"]["OverviewRoutes"];
            store: components["schemas"]["StoreInfo"];
            window: components["schemas"]["Span"];
        };
        /** @description The busiest counters, all label sets of a name in one. */
        OverviewCounters: {
            examined: number;
            /** @description Names that there are, of those series that were looked at; and series that there are. */
            found: number;
            /** @description When the series were ranked, of which there are over 1,000. null where all were read for this answer; and where examined is less than total, until they have been ranked. */
            ranked_at: number | null;
            rows: components["schemas"]["MetricRow"][];
            total: number;
        };
        /** @description Changes in the log, and the most frequent patterns. */
        OverviewMessages: {
            changes: components["schemas"]["ChangeRow"][];
            /** @description How many of these are compared by clock hours; the others by sliding hours. */
            clock_hours: number;
            compared: number;
            frequent: components["schemas"]["FrequencyRow"][];
            sources: number;
        };
        /** @description The five numbers, each against the window before. */
        OverviewNumbers: {
            errors: components["schemas"]["FailedShare"];
            hits: components["schemas"]["Hits"];
            logged: components["schemas"]["LoggedErrors"];
            p95: components["schemas"]["Percentile"];
            slowest: components["schemas"]["SlowestRoute"];
        };
        /** @description The busiest routes. */
        OverviewRoutes: {
            examined: number;
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            /** @description When they were read, if they are of very many label sets, which are kept for a while. */
            ranked_at: number | null;
            rows: components["schemas"]["Route"][];
            sampled: boolean;
            values_precision: number;
            values_start: number;
        };
        /** @description A piece of a sentence. The texts of all pieces, joined, are the sentence. */
        Part: {
            /**
             * @description What the piece is about, so that a page can link or highlight it.
             * @enum {string}
             */
            kind: "text" | "metric" | "value" | "usual" | "group" | "mark" | "time" | "baseline" | "alert" | "exception" | "messages";
            /** @description The label and its value, for `group`; a value of null means "without this label". The severity of `messages`. */
            label: string | null;
            /** @description The metric, for `metric` and `group`; the ID of an `exception`; the logger of `messages`. */
            name: string | null;
            /** @description Its text. */
            text: string;
            /** @description Unix seconds, for `mark` and `time`. */
            time: number | null;
            /** @description The value of the label. */
            value: string | null;
        };
        /** @description Log patterns of the window that the baseline lacks, and the reverse. */
        PatternChanges: {
            /** @description Patterns that are new in the window. */
            new: components["schemas"]["LogPattern"][];
            /** @description Why they were not compared; "" if they were. */
            reason: string;
            /** @description Patterns of the baseline that have vanished. */
            vanished: components["schemas"]["LogPattern"][];
        };
        /** @description The p95 response time of all requests. */
        Percentile: {
            before: number | null;
            /** @description The same of the last five complete minutes; null where the window does not end now. */
            recent: number | null;
            /** @description Whether only some requests were timed. */
            sampled: boolean;
            /** @description Since when durations are known, Unix seconds; null: throughout the window. */
            since: number | null;
            value: number | null;
        };
        /** @description An error and its fix. */
        Problem: {
            code: string;
            fix: string;
            message: string;
        };
        /** @description Every answer of Prometheus' API other than 2xx. */
        PrometheusError: {
            /** @description The problem, and how to fix it. */
            error: string;
            /** @enum {string} */
            errorType: "bad_data" | "execution" | "timeout" | "internal" | "not_found" | "unavailable";
            /** @enum {string} */
            status: "error";
        };
        /** @description One row of a ranking. */
        Ranked: {
            /** @description The number of events or values within the window. */
            count: number;
            /** @description A label's value, or a series' name. null stands for "without this label". */
            key: string | null;
            /** @description Its part of everything ranked, 0 to 1: of the counts, or of the totals if these are ranked; of its own count if failures are ranked. */
            share: number;
            /** @description The number that ranks it: the count, the failures, or a mean, total or percentile. */
            value: number;
        };
        /** @description A route within a window. */
        Route: {
            /** @description Requests within as long a time before the window; null where nothing keeps it. */
            before: number | null;
            count: number;
            /** @description Requests that failed, and their part of its own, 0 to 1; null where it is unknown. */
            failed: number | null;
            failing: number | null;
            /** @description The mean of its durations, and their p95, seconds; null where none is known. */
            mean: number | null;
            p95: number | null;
            per_second: number;
            route: string;
            /** @description Its share of all requests, 0 to 1. */
            share: number;
            /** @description The sum of its durations, seconds, and its share of that of all routes. */
            total: number | null;
            total_share: number | null;
            /** @description Its counts by intervals, see `RouteTable.values_start` and `values_precision`; null before its first request, nothing if there are too many routes. */
            values: (number | null)[];
        };
        /** @description /api/routes. */
        RoutesAnswer: {
            examined: number;
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            /** @description When they were read, if they are of very many label sets, which are kept for a while. */
            ranked_at: number | null;
            rows: components["schemas"]["Route"][];
            sampled: boolean;
            /** @description Number of series of durations, and of those with percentiles. */
            timed: number;
            timed_read: number;
            values_precision: number;
            values_start: number;
            window: components["schemas"]["Span"];
        };
        /** @description A rule with its alerts. */
        RuleStatus: {
            /** @description The worst first. For a rule with `by`, only those that are not ok. */
            alerts: components["schemas"]["AlertStatus"][];
            by: string;
            /** @description The condition in words, and as PromQL; "" if no evaluator has published the rule. */
            condition: string;
            /** @description The value that is compared with the limit, as PromQL, or ""; the limit; the unit of both. */
            expression: string;
            for_seconds: number;
            keep: number;
            labels: {
                [key: string]: string;
            };
            left_out: number;
            limit: number | null;
            message: string;
            /** @description The metric without labels; "" if the condition is not about one. */
            metric: string;
            name: string;
            notify: string[];
            /** @description With `by`: values that are ok, and values beyond the limit, which are not evaluated. */
            ok: number;
            query: string;
            severity: string;
            /**
             * @description The status of the alert that is worst off, and why nothing could be evaluated.
             * @enum {string}
             */
            status: "firing" | "pending" | "ok";
            unit: string;
            unknown: string;
            /** @description The condition, a key of CONDITIONS in rules_file.py; "" if the rule is not published. */
            when: string;
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
            /** @description Whether the newest interval is the current one, so that its value may grow. */
            partial: boolean;
            /** @description Interval width, seconds. */
            precision: number;
            /** @description Start of the oldest interval, Unix seconds. */
            start: number;
            /** @description The values, one per interval, oldest first. */
            values: number[];
            /** @description The window that was read; the samples may begin later. null of a series that no query made. */
            window: components["schemas"]["CoveredWindow"] | null;
        };
        /** @description /api/series. */
        SeriesAnswer: {
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description How many series there are, of which these are the busiest. */
            of: number;
            series: components["schemas"]["GroupedSeries"][];
            window: components["schemas"]["CoveredWindow"];
        };
        /** @description A label set of the same name. */
        Sibling: {
            count: number;
            name: string;
            share: number;
        };
        /** @description Alerts that notify nobody until a time. */
        Silence: {
            /** @description Names of alerts, with * and ?. */
            alerts: string;
            comment: string;
            id: string;
            /** @description Unix seconds. */
            until: number;
        };
        /** @description The slowest route. */
        SlowestRoute: {
            before: number | null;
            route: string | null;
            value: number | null;
        };
        /** @description The time that is shown, Unix seconds. */
        Span: {
            /** @description Whether a precision keeps the compared period; which, and where the period begins and ends. */
            before: boolean;
            before_end: number | null;
            before_precision: number | null;
            before_start: number | null;
            end: number;
            /** @description Interval width of the histograms that belong to it, and where they begin. */
            histograms: number;
            histograms_before_end: number | null;
            /** @description The same of the compared period of histograms. */
            histograms_before_start: number | null;
            histograms_end: number;
            histograms_start: number;
            precision: number;
            /** @description Seconds from the compared period to the window, 23 to 25 hours from yesterday by local time; null: it is the period right before. */
            shift: number | null;
            start: number;
        };
        /** @description A database statement, by what groups it. */
        Statement: {
            before: number | null;
            /** @description The most frequent callers, and their number. */
            callers: components["schemas"]["Caller"][];
            callers_of: number;
            /** @description How often it came in the window, and in the compared period; null if that is not kept. */
            count: number;
            errors: number;
            mean: number | null;
            p95: number | null;
            /** @description The stored name of its durations; "" if there are none. */
            series: string;
            share: number | null;
            statement: string;
            /** @description The time of all its executions, seconds; and its share of the time of all rows. */
            total: number | null;
            /** @description Timed executions per interval of values_precision, from values_start on. */
            values: (number | null)[];
        };
        /** @description /api/statements. */
        StatementsAnswer: {
            /** @description Executions and seconds of all rows. */
            count: number;
            /** @description Label sets of durations and counters that were read, and that there are. */
            examined: number;
            /** @description Rows that match. */
            found: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            of: number;
            rows: components["schemas"]["Statement"][];
            total: number;
            values_precision: number;
            values_start: number;
            window: components["schemas"]["Span"];
        };
        /** @description /api/status. */
        StatusAnswer: {
            /** @description The measures that were checked: of all requests, and of routes and tasks that stand out. */
            checks: components["schemas"]["Check"][];
            /** @description Groups of exceptions that were seen first within the last half hour. */
            exceptions: components["schemas"]["ExceptionChange"][];
            /** @description Names of the alerts that fire. */
            firing: string[];
            /** @description Patterns of errors in the log that were seen first within the last half hour. */
            messages: components["schemas"]["LogPattern"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description The pieces of the sentence. */
            parts: components["schemas"]["Part"][];
            /** @description The result in one sentence. */
            sentence: string;
            /** @description Start of the five minutes, Unix seconds, included. */
            since: number;
            /**
             * @description `unusual` if a check is out of its range, an alert fires, a deploy made it worse, or there are new exceptions or errors; `unknown` if no check could be made.
             * @enum {string}
             */
            state: "usual" | "unusual" | "unknown";
            /** @description End of the five minutes, Unix seconds, excluded. */
            until: number;
        };
        /** @description The store and its retention. */
        StoreInfo: {
            histograms: {
                [key: string]: number;
            };
            location: string;
            prefix: string;
            /**
             * @description The server that is read; a replica may lag.
             * @enum {string}
             */
            read_from: "primary" | "replica";
            retention: {
                [key: string]: number;
            };
            version: string;
        };
        /** @description /api/summary. */
        SummaryAnswer: {
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description How many there are; with `by`, the first 50 are listed. */
            of: number;
            summaries: components["schemas"]["GroupedSummary"][];
            window: components["schemas"]["CoveredWindow"];
        };
        /** @description A summary per interval; null for intervals without values. */
        SummaryOverTime: {
            count: number[];
            mean: (number | null)[];
            partial: boolean;
            quantiles: {
                [key: string]: (number | null)[];
            };
            start: number;
        };
        /** @description The distribution of a histogram within a window. */
        SummaryRow: {
            /** @description Lower edge, upper edge, count; ascending. */
            buckets: [
                number,
                number,
                number
            ][];
            count: number;
            high: number | null;
            low: number | null;
            mean: number | null;
            name: string;
            over_time: components["schemas"]["SummaryOverTime"] | null;
            /** @description "0.95" -> the 95th percentile. */
            quantiles: {
                [key: string]: number | null;
            };
            share_above: number | null;
            stddev: number | null;
            total: number | null;
        };
        /** @description A background task. */
        Task: {
            before: number | null;
            /** @description How often it came in the window, and in the compared period; null if that is not kept. */
            count: number;
            database: number | null;
            /** @description Runs that failed, and their share of all runs. */
            failed: number;
            failing: number;
            mean: number | null;
            /** @description Runs in the window by outcome, the most frequent first. */
            outcomes: components["schemas"]["Outcome"][];
            p95: number | null;
            /** @description The stored name of its durations; "" if there are none. */
            series: string;
            share: number | null;
            task: string;
            /** @description The time of all its executions, seconds; and its share of the time of all rows. */
            total: number | null;
            /** @description Timed executions per interval of values_precision, from values_start on. */
            values: (number | null)[];
            /** @description Means of the wait in the queue and of the time in databases, seconds; null if not recorded. */
            wait: number | null;
        };
        /** @description /api/top. */
        TopAnswer: {
            /** @description Whether none of the groups that were not compared can be among the rows. */
            complete: boolean;
            /** @description The number of groups that were compared: percentiles are read of a bounded number, those whose mean and spread allow the highest. */
            examined: number;
            /** @description The number of groups that could be ranked. */
            groups: number;
            /** @description The number of intervals of the window. */
            intervals: number;
            /** @description Groups that were not compared because they have too many series. */
            left_out: (string | null)[];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
            /** @description The groups, in the order of the ranking. */
            rows: components["schemas"]["Ranked"][];
            /** @description The window that was ranked. */
            window: components["schemas"]["CoveredWindow"] | null;
        };
        /** @description A change of an alert to "firing" or "resolved", recorded once. */
        Transition: {
            detail: string;
            name: string;
            severity: string;
            status: string;
            /** @description Unix seconds, by the server's clock. */
            time: number;
            value: number | null;
        };
        /** @description /api/verdict. */
        VerdictAnswer: {
            /** @description The window after the deploy; null if there is none yet. */
            after: components["schemas"]["VerdictWindow"] | null;
            /**
             * @description What the time after the deploy was compared with.
             * @enum {string}
             */
            against: "previous" | "yesterday" | "last-week";
            /** @description The baseline; null if it is unknown. */
            before: components["schemas"]["VerdictWindow"] | null;
            /** @description The error budget of all looks: the probability of a false alarm. */
            level: number;
            /** @description The newest look that is complete; null if none is. */
            look: number | null;
            /** @description Fixed times at which the deploy is judged, seconds after the interval of the mark. */
            looks: number[];
            /** @description The mark; null if a time was given. */
            mark: components["schemas"]["Mark"] | null;
            /** @description Other marks within both windows. */
            marks: components["schemas"]["Mark"][];
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            /** @description The effect of a changed mix of routes on all requests. */
            mix: components["schemas"]["VerdictMix"];
            /** @description When the next look is complete, Unix seconds; null if this was the last. */
            next_look: number | null;
            /** @description The 5-minute sums before the deploy from which the noise of error rates was learned; null if fewer than six hours are kept. */
            noise: components["schemas"]["VerdictWindow"] | null;
            /** @description The baseline that is not kept, if that is why there is no judgment. */
            not_kept: components["schemas"]["NotKept"] | null;
            now: number;
            /** @description All requests together; null if nothing was compared. */
            overall: components["schemas"]["VerdictRow"] | null;
            /** @description The log patterns that changed. */
            patterns: components["schemas"]["VerdictPatterns"];
            /** @description Interval width of everything that was compared, seconds. */
            precision: number;
            /** @description One sentence that explains the verdict. */
            reason: string;
            /** @description Worse ones first, then better ones, then by requests. */
            routes: components["schemas"]["VerdictRow"][];
            /** @description Routes that there are. */
            routes_of: number;
            /** @description The moment of the deploy, Unix seconds. */
            since: number;
            /** @description The number of tests of this look. */
            tests: number;
            /**
             * @description The judgment of the deploy as a whole.
             * @enum {string}
             */
            verdict: "worse" | "watching" | "better" | "same" | "too little data" | "not kept";
        };
        /** @description A metric after a deploy, compared with before. */
        VerdictMetric: {
            /** @description Error rate, 0 to 1, or p95, seconds, after the deploy; null if unknown. */
            after: number | null;
            /** @description The same in the baseline; null if unknown. */
            before: number | null;
            /** @description `after - before`; null if unknown. */
            difference: number | null;
            /** @description Upper end of the same; null if unknown. */
            high: number | null;
            /** @description Lower end of the 95 % confidence interval of the ratio, at the same mix of routes; null if unknown. */
            low: number | null;
            /** @description The part of `difference` of all requests that a changed mix of routes makes, which is not judged; the rest is within the routes. null if unknown. */
            mix: number | null;
            /** @description Whether the mix of routes made all requests "worse" or "better", or left them the "same". null if unknown. */
            mix_verdict: ("worse" | "watching" | "better" | "same" | "too little data" | "not kept") | null;
            /** @description The probability of such a change without a deploy, one-sided, in the direction of the change. null if it was not tested. */
            p: number | null;
            /** @description The same, adjusted for the number of tests. */
            p_adjusted: number | null;
            /** @description `after / before`; null if unknown or if it was 0 before. */
            ratio: number | null;
            /** @description Why there is no judgment, why a significant change is called the same, or by which evidence a worse metric is no storm; "" otherwise. */
            reason: string;
            /** @description The test, in words; "" if there was none. */
            test: string;
            /**
             * @description The judgment of this metric.
             * @enum {string}
             */
            verdict: "worse" | "watching" | "better" | "same" | "too little data" | "not kept";
        };
        /** @description The effect of a changed mix of routes on all requests; reported, not judged. */
        VerdictMix: {
            /** @description The effect in words; "" if there is none. */
            reason: string;
            /**
             * @description "worse" if more requests to routes that fail more often or are slower raised the error rate or the p95 of all requests; "better", or "same".
             * @enum {string}
             */
            verdict: "worse" | "watching" | "better" | "same" | "too little data" | "not kept";
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
            /** @description Its error rate, 0 to 1. */
            error_rate: components["schemas"]["VerdictMetric"];
            /** @description Its p95, seconds. */
            p95: components["schemas"]["VerdictMetric"];
            /** @description Its requests. */
            requests: components["schemas"]["VerdictTraffic"];
            /** @description null for all requests. */
            route: string | null;
            /**
             * @description The judgment of the route, by both metrics: worse, watching, unknown, better, same.
             * @enum {string}
             */
            verdict: "worse" | "watching" | "better" | "same" | "too little data" | "not kept";
        };
        /** @description Requests after a deploy and before; reported, never judged. */
        VerdictTraffic: {
            /** @description Requests after the deploy. */
            after: number;
            /** @description Requests per second after the deploy. */
            after_per_second: number;
            /** @description Requests in the baseline. */
            before: number;
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
            database: boolean;
            exceptions: boolean;
            jobs: boolean;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
            now: number;
        };
        /** @description A writing process and its last report. */
        WriterRow: {
            alive: boolean;
            buffered: number;
            dropped: number;
            host: string;
            instance: number | null;
            last_flush: number | null;
            last_trouble: string;
            /** @description Reason -> precision -> events. */
            lost: {
                [key: string]: {
                    [key: string]: number;
                };
            };
            pid: number;
            seen: number;
            stored: number;
            troubles: {
                [key: string]: number;
            };
            /** @description Whether a finding reports these losses; events recorded with an old time are expected. */
            unexpected: boolean;
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
