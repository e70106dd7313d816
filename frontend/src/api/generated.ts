// Made by `npm run types` from openapi.json; not to be edited.
export interface paths {
    "/api/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The data of the overview */
        get: operations["overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Samples of counters or gauges */
        get: operations["series"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/names": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Names of series */
        get: operations["names"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The most frequent, slowest or most failing */
        get: operations["top"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Distributions of histograms */
        get: operations["summary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Log messages: changes, the most frequent patterns, the newest */
        get: operations["messages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exceptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Exceptions by type and origin */
        get: operations["exceptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exception": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One group of exceptions, with its traceback */
        get: operations["exception"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/marks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Marks, such as deploys */
        get: operations["marks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/verdict": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether a deploy made requests fail more often, or slower */
        get: operations["verdict"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/pages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Routes of a web application */
        get: operations["pages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/counters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counters, gauges or histograms, each with a sparkline */
        get: operations["counters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/detail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everything about one series */
        get: operations["detail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/forecast": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The expected range of a series */
        get: operations["forecast"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the last five complete minutes are as usual */
        get: operations["status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What accounts for a rise or a fall */
        get: operations["explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Health of the store */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the store answers; needs no access */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A precision that keeps both the window and its baseline. */
        Alternative: {
            precision: number;
            /** @description Start of the oldest interval that it keeps, Unix seconds. */
            reaches: number;
        };
        /** @description The fields of every answer. */
        Answer: {
            now: number;
            /** @description Why a part is missing, as sentences: "127.0.0.1:7003 does not answer". */
            missing: string[];
        };
        /** @description A pattern that is new, comes far more often than before, or stopped. */
        Change: {
            logger: string;
            severity: string;
            pattern: string;
            count: number;
            before: number;
            expected: number;
            sliding: boolean;
            first: number | null;
            last: number | null;
            sample: string;
            /** @enum {string} */
            kind: "new" | "spiking" | "gone";
        };
        /** @description The series that have one value of a label, before and after. */
        ChangedGroup: {
            label: string;
            /** @description None: without this label. */
            value: string | null;
            /** @description Its count, error rate or p95. `before` is that of the baseline, a count scaled to the length of the window. None if there were no events. */
            before: number | null;
            after: number | null;
            /** @description Its part of the total's change: for counts `after - before`; for an error rate the sum of both effects; for a p95 the total's p95 less the same with this group as in the baseline. */
            change: number;
            /** @description The same as a share of the total's change; None where that is 0, and of a p95. */
            share: number | null;
            /** @description For an error rate: the effect of the group's own error rate, and of its share of requests. */
            rate_effect: number | null;
            mix_effect: number | null;
            /** @description Events (requests of an error rate, values of a p95) in the baseline, unscaled, and in the window. */
            count_before: number;
            count: number;
            /** @description Whether the change is beyond noise, and not that of another named group. */
            named: boolean;
        };
        /** @description The groups of one label. Changes of different labels must not be added. */
        ChangedLabel: {
            label: string;
            /** @description The largest changes first, named ones before all others. */
            groups: components["schemas"]["ChangedGroup"][];
            /** @description How many groups there are, and the summed change of those that are not listed; None of a p95. */
            of: number;
            rest: number | null;
        };
        /** @description One measure of the last five complete minutes, and its expected range. */
        CheckRow: {
            /** @enum {string} */
            measure: "requests" | "error rate" | "p95" | "count";
            name: string;
            explain: components["schemas"]["ExplainLink"];
            unit: string;
            /** @enum {string} */
            state: "usual" | "high" | "low" | "unknown";
            /** @description Why it is unknown. */
            reason: string;
            value: number | null;
            /** @description The expected range, and the usual value. */
            low: number | null;
            mid: number | null;
            high: number | null;
            /** @description Events within the window. */
            count: number;
            /** @description The baseline: its interval width, its window, and how many intervals it has. */
            precision: number;
            baseline_since: number;
            baseline_until: number;
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
        /** @description A series, or all label sets of a name, within the window. */
        CounterRow: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            /** @description Number of label sets. */
            series: number;
            /** @description Whether these are all: of a great many series, those of the last name may go on. */
            complete: boolean;
            /** @description How often it happened within the window, and within as long a time before; of a gauge, how many samples there are. null where nothing keeps what was before. */
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
        /** @description /api/counters. */
        CountersAnswer: {
            now: number;
            missing: string[];
            window: components["schemas"]["Window"];
            rows: components["schemas"]["CounterRow"][];
            /** @description Series that begin as the pattern does; how many were looked at; and rows there are of those. */
            total: number;
            examined: number;
            found: number;
            /** @description When the series were ranked, of which there are over 1,000: the first 1,000 rows are there, with figures of now. null where all were read for this answer; and where examined is less than total, until they have been ranked. */
            ranked_at: number | null;
        };
        /** @description A series as a chart draws it; the p95 of a histogram. */
        Curve: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            precision: number;
            start: number;
            values: (number | null)[];
            partial: boolean;
            /** @description For a sum of several series: how many were summed, and how many there are. */
            examined: number;
            of: number;
        };
        /** @description Mean time per request that is spent in the database, seconds. */
        DatabaseTime: {
            name: string;
            before: number | null;
            after: number | null;
            change: number | null;
            /** @description As a share of the response time, 0 to 1. */
            share_before: number | null;
            share: number | null;
        };
        /** @description /api/detail. */
        DetailAnswer: {
            now: number;
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
            window: components["schemas"]["Window"];
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
        /** @description Every answer other than 2xx. */
        ErrorAnswer: {
            error: components["schemas"]["Problem"];
        };
        /** @description A group with the traceback of its newest exception. */
        ErrorDetail: {
            id: string;
            type: string;
            message: string;
            place: string;
            function: string;
            log_place: string;
            count: number;
            total: number;
            first: number;
            last: number;
            is_new: boolean;
            values: number[];
            routes: components["schemas"]["ErrorShare"][];
            releases: components["schemas"]["ErrorShare"][];
            traceback: string;
        };
        /** @description Exceptions of one type and origin. */
        ErrorGroup: {
            /** @description The same in every process and release. */
            id: string;
            type: string;
            /** @description Text of the newest exception. */
            message: string;
            /** @description Innermost frame of the application, `pay.py:42 in charge`; "" without a traceback. */
            place: string;
            /** @description Module and qualified name of its function. */
            function: string;
            /** @description The end of the pattern of log messages with this exception. */
            log_place: string;
            /** @description In the window, and ever. */
            count: number;
            total: number;
            first: number;
            last: number;
            /** @description Whether the first one is in the window. */
            is_new: boolean;
            /** @description Counts by interval, from the start of the window. */
            values: number[];
            /** @description The most frequent first. */
            routes: components["schemas"]["ErrorShare"][];
            /** @description The last seen first. */
            releases: components["schemas"]["ErrorShare"][];
        };
        /** @description Exceptions of a group by route, or by release, ever. */
        ErrorShare: {
            /** @description "(other)": all beyond the limit of 20 routes, or 10 releases. */
            name: string;
            count: number;
            first: number;
            last: number;
        };
        /** @description /api/exception. */
        ExceptionAnswer: {
            now: number;
            missing: string[];
            precision: number;
            start: number;
            end: number;
            kept_since: number;
            /** @description null if the group is not kept. */
            exception: components["schemas"]["ErrorDetail"] | null;
        };
        /** @description /api/exceptions. */
        ExceptionsAnswer: {
            now: number;
            missing: string[];
            precision: number;
            /** @description The window [start, end), and the oldest interval that is kept at this precision. */
            start: number;
            end: number;
            kept_since: number;
            /** @description Exceptions in the window, of all groups that match; number of these groups, and of new ones. */
            count: number;
            groups: number;
            new: number;
            /** @description Exceptions in the window beyond the limit of groups; groups ever removed for new ones. */
            other: number;
            evicted: number;
            rows: components["schemas"]["ErrorGroup"][];
        };
        /** @description /api/explain. */
        ExplainAnswer: {
            now: number;
            missing: string[];
            name: string;
            labels: {
                [key: string]: string;
            };
            /** @enum {string} */
            measure: "count" | "error rate" | "p95";
            unit: string;
            /**
             * @description `not kept`: no precision keeps both windows; `no data`: there are no events to compare.
             * @enum {string}
             */
            state: "compared" | "not kept" | "no data";
            reason: string;
            sentence: string;
            parts: components["schemas"]["Part"][];
            /** @description Interval width of both windows, and the start of the oldest interval that is kept. */
            precision: number | null;
            reaches: number | null;
            /** @description The windows that were compared, [since, until), on the edges of intervals. */
            since: number;
            until: number;
            asked_since: number;
            asked_until: number;
            /** @enum {string} */
            baseline: "before" | "yesterday" | "week" | "custom";
            baseline_since: number;
            baseline_until: number;
            /** @description If `not kept`: precisions that keep both windows, with edges rounded to their intervals. */
            alternatives: components["schemas"]["Alternative"][];
            /** @description The total; of counts the baseline's is scaled to the length of the window. */
            before: number | null;
            after: number | null;
            change: number | null;
            count_before: number;
            count: number;
            /** @description Whether the total changed and no group is named. */
            even: boolean;
            /** @description Whether there were enough intervals to estimate noise; if not, there are no causes. */
            judged: boolean;
            judged_reason: string;
            /** @description Groups whose change is beyond noise, the main one first. Each change is named once, by the label that fits it best. */
            causes: components["schemas"]["ChangedGroup"][];
            dimensions: components["schemas"]["ChangedLabel"][];
            messages: components["schemas"]["PatternChanges"];
            marks: components["schemas"]["Mark"][];
            database: components["schemas"]["DatabaseTime"] | null;
            not_compared: string[];
        };
        /** @description The arguments of explain() that explain a check's value. */
        ExplainLink: {
            name: string;
            failing: string[];
        };
        /** @description A finding of a check. */
        Finding: {
            /** @enum {string} */
            level: "ok" | "warn" | "fail";
            topic: string;
            text: string;
            fix: string;
        };
        /** @description The expected range of a series. */
        Forecast: {
            precision: number;
            method: string;
            /** @description The level of the expected range, 0 to 1. */
            level: number;
            /** @description The value of the running interval so far, which is not compared. */
            running: number | null;
            past: components["schemas"]["ForecastPast"][];
            ahead: components["schemas"]["ForecastAhead"][];
            /** @description Why there is no forecast; "" if there is one. */
            reason: string;
        };
        /** @description A future interval. */
        ForecastAhead: {
            start: number;
            low: number;
            mid: number;
            high: number;
        };
        /** @description /api/forecast. */
        ForecastAnswer: {
            now: number;
            missing: string[];
            precision: number;
            method: string;
            level: number;
            running: number | null;
            past: components["schemas"]["ForecastPast"][];
            ahead: components["schemas"]["ForecastAhead"][];
            reason: string;
            name: string;
        };
        /** @description A past interval and its expected range. */
        ForecastPast: {
            start: number;
            value: number;
            low: number;
            mid: number;
            high: number;
            outside: boolean;
        };
        /** @description The frequency of a log pattern in the last hour, and in the hour before. */
        Frequency: {
            logger: string;
            severity: string;
            pattern: string;
            count: number;
            before: number;
            /** @description The count of the last hour by now at the rate of the hour before. */
            expected: number;
            /** @description Whether the hours are the last 60 minutes and the 60 before; else clock hours, UTC. */
            sliding: boolean;
            first: number | null;
            last: number | null;
            sample: string;
        };
        /** @description Series that have the same values of some labels, aggregated. */
        GroupedSeries: {
            name: string;
            /** @enum {string} */
            kind: "counter" | "gauge" | "histogram";
            precision: number;
            start: number;
            values: (number | null)[];
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
            quantiles: {
                [key: string]: number | null;
            };
            share_above: number | null;
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
        /** @description /api/health. */
        HealthAnswer: {
            now: number;
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
            logger: string;
            severity: string;
            pattern: string;
            sample: string;
            /** @description When it was seen first and last, Unix seconds. */
            first: number;
            last: number;
            /** @description Messages in the window if it is new, in the baseline if it has vanished; None if unknown. */
            count: number | null;
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
        /** @description A logger and a severity that messages came with. */
        Logger: {
            logger: string;
            severity: string;
            last: number;
        };
        /** @description A deploy or another moment. */
        Mark: {
            time: number;
            label: string;
        };
        /** @description /api/marks. */
        MarksAnswer: {
            now: number;
            missing: string[];
            marks: components["schemas"]["Mark"][];
        };
        /** @description One message. */
        Message: {
            logger: string;
            severity: string;
            time: number | null;
            text: string;
        };
        /** @description /api/messages. */
        MessagesAnswer: {
            now: number;
            missing: string[];
            changes: components["schemas"]["Change"][];
            frequent: components["schemas"]["Frequency"][];
            recent: components["schemas"]["Message"][];
            loggers: components["schemas"]["Logger"][];
            /** @description How many loggers and severities there are, how many of them these are of, and how many of these are compared by clock hours. */
            sources: number;
            compared: number;
            clock_hours: number;
        };
        /** @description /api/names. */
        NamesAnswer: {
            now: number;
            missing: string[];
            names: string[];
            /** @description How many match, of which these are the first. */
            total: number;
        };
        /** @description A baseline that is not kept at this precision. */
        NotKept: {
            /** @enum {string} */
            of: "counters" | "histograms";
            /** @description Start of the least baseline, and of the oldest interval that is kept. */
            since: number;
            oldest: number;
            /** @description The command that keeps as much from now on; "" if no retention does. */
            command: string;
        };
        /** @description The five numbers, each against the window before. */
        Numbers: {
            hits: components["schemas"]["Hits"];
            errors: components["schemas"]["Share"];
            p95: components["schemas"]["Percentile"];
            slowest: components["schemas"]["Slowest"];
            logged: components["schemas"]["Logged"];
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
            missing: string[];
            store: components["schemas"]["StoreInfo"];
            window: components["schemas"]["Window"];
            numbers: components["schemas"]["Numbers"];
            chart: components["schemas"]["Curve"][];
            /** @description The expected range of the first curve of the chart, if that is a counter. */
            expected: components["schemas"]["Forecast"] | null;
            marks: components["schemas"]["Mark"][];
            pages: components["schemas"]["OverviewPages"];
            messages: components["schemas"]["OverviewMessages"];
            counters: components["schemas"]["OverviewCounters"];
            health: components["schemas"]["OverviewHealth"];
        };
        /** @description The busiest counters, all label sets of a name in one. */
        OverviewCounters: {
            rows: components["schemas"]["CounterRow"][];
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
            changes: components["schemas"]["Change"][];
            frequent: components["schemas"]["Frequency"][];
            sources: number;
            compared: number;
            /** @description How many of these are compared by clock hours; the others by sliding hours. */
            clock_hours: number;
        };
        /** @description The busiest routes. */
        OverviewPages: {
            rows: components["schemas"]["Page"][];
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            examined: number;
            sampled: boolean;
            values_start: number;
            values_precision: number;
        };
        /** @description A route and its requests. */
        Page: {
            /** @description "" for requests without a route. */
            route: string;
            count: number;
            /** @description In the window before; null if that is not kept. */
            before: number | null;
            per_second: number;
            /** @description Of all requests. */
            share: number;
            failed: number;
            /** @description Of the requests of this route. */
            failing: number;
            mean: number | null;
            p95: number | null;
            /** @description Count x mean, seconds; and its share of that of all routes. */
            total: number | null;
            total_share: number | null;
            /** @description Requests per interval of values_precision, from values_start on, the newest last. */
            values: (number | null)[];
        };
        /** @description /api/pages. */
        PagesAnswer: {
            now: number;
            missing: string[];
            window: components["schemas"]["Window"];
            rows: components["schemas"]["Page"][];
            /** @description Number of routes among the label sets that were read. */
            found: number;
            /** @description Number of label sets of requests, and of those that were read. */
            of: number;
            examined: number;
            /** @description Number of series of durations, and of those with percentiles. */
            timed: number;
            timed_read: number;
            /** @description Whether only some requests were timed. */
            sampled: boolean;
            values_start: number;
            values_precision: number;
        };
        /** @description A piece of a sentence. The texts of all pieces, joined, are the sentence. */
        Part: {
            /** @enum {string} */
            kind: "text" | "metric" | "value" | "usual" | "group" | "mark" | "time" | "baseline";
            text: string;
            /** @description The metric, for `metric` and `group`. */
            name: string | null;
            /** @description The label and its value, for `group`; a value of None means "without this label". */
            label: string | null;
            value: string | null;
            /** @description Unix seconds, for `mark` and `time`. */
            time: number | null;
        };
        /** @description Log patterns of the window that the baseline lacks, and the reverse. */
        PatternChanges: {
            new: components["schemas"]["LogPattern"][];
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
        /** @description A row of a ranking. */
        RankedRow: {
            /** @description A label's value, or a name; null: without this label. */
            key: string | null;
            count: number;
            share: number;
            value: number;
        };
        /** @description Samples, the oldest first, without holes: null where a gauge was not set. */
        Series: {
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
        };
        /** @description /api/series. */
        SeriesAnswer: {
            now: number;
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
        /** @description The slowest route. */
        Slowest: {
            value: number | null;
            before: number | null;
            route: string | null;
        };
        /** @description /api/status. */
        StatusAnswer: {
            now: number;
            missing: string[];
            /** @enum {string} */
            state: "usual" | "unusual" | "unknown";
            sentence: string;
            parts: components["schemas"]["Part"][];
            since: number;
            until: number;
            checks: components["schemas"]["CheckRow"][];
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
            missing: string[];
            precision: number;
            start: number;
            end: number;
            summaries: components["schemas"]["GroupedSummary"][];
            /** @description How many there are; with `by`, the first 50 are listed. */
            of: number;
        };
        /** @description /api/top. */
        TopAnswer: {
            now: number;
            missing: string[];
            rows: components["schemas"]["RankedRow"][];
            groups: number;
            /** @description The number of groups that were compared. */
            examined: number;
            complete: boolean;
            left_out: (string | null)[];
            intervals: number;
        };
        /** @description The fields of /api/verdict. */
        Verdict: {
            /** @enum {string} */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            /** @description One sentence. */
            reason: string;
            mark: components["schemas"]["Mark"] | null;
            /** @description The moment of the deploy. */
            since: number;
            /** @enum {string} */
            against: "previous" | "yesterday" | "last-week";
            /** @description Width of the intervals that were compared, seconds. */
            precision: number;
            /** @description Fixed looks, seconds after the interval of the mark; the newest complete one; and when the next one is complete. */
            looks: number[];
            look: number | null;
            next_look: number | null;
            after: components["schemas"]["VerdictWindow"] | null;
            before: components["schemas"]["VerdictWindow"] | null;
            not_kept: components["schemas"]["NotKept"] | null;
            /** @description The error budget of all looks, and the number of tests of this one. */
            level: number;
            tests: number;
            overall: components["schemas"]["VerdictRow"] | null;
            routes: components["schemas"]["VerdictRow"][];
            /** @description How many routes there are, of which these are the busiest. */
            routes_of: number;
            patterns: components["schemas"]["VerdictPatterns"];
            /** @description Other marks within both windows. */
            marks: components["schemas"]["Mark"][];
        };
        /** @description /api/verdict. */
        VerdictAnswer: {
            now: number;
            missing: string[];
            /** @enum {string} */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            reason: string;
            mark: components["schemas"]["Mark"] | null;
            since: number;
            /** @enum {string} */
            against: "previous" | "yesterday" | "last-week";
            precision: number;
            looks: number[];
            look: number | null;
            next_look: number | null;
            after: components["schemas"]["VerdictWindow"] | null;
            before: components["schemas"]["VerdictWindow"] | null;
            not_kept: components["schemas"]["NotKept"] | null;
            level: number;
            tests: number;
            overall: components["schemas"]["VerdictRow"] | null;
            routes: components["schemas"]["VerdictRow"][];
            routes_of: number;
            patterns: components["schemas"]["VerdictPatterns"];
            marks: components["schemas"]["Mark"][];
        };
        /** @description The error rate or p95 after a deploy, compared with before. */
        VerdictMetric: {
            /** @enum {string} */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            /** @description Error rate, 0 to 1, or p95, seconds. */
            after: number | null;
            before: number | null;
            /** @description null if it was 0 before. */
            ratio: number | null;
            difference: number | null;
            /** @description 95 % confidence interval of the ratio. */
            low: number | null;
            high: number | null;
            /** @description One-sided, in the direction of the change; and adjusted for the number of tests. null if it was not tested. */
            p: number | null;
            p_adjusted: number | null;
            /** @description The test, in words. */
            test: string;
            /** @description Why there is no judgment, or why a significant change is called the same. */
            reason: string;
        };
        /** @description A log pattern that is new or vanished. */
        VerdictPattern: {
            logger: string;
            severity: string;
            pattern: string;
            /** @description Messages in the last two hours. */
            count: number;
            first: number | null;
            last: number | null;
            sample: string;
        };
        /** @description Changes of log patterns. */
        VerdictPatterns: {
            /** @description false if the deploy is more than two hours ago. */
            kept: boolean;
            new: components["schemas"]["VerdictPattern"][];
            vanished: components["schemas"]["VerdictPattern"][];
        };
        /** @description A route after a deploy, compared with before. */
        VerdictRow: {
            /** @description null for all requests. */
            route: string | null;
            /** @enum {string} */
            verdict: "worse" | "better" | "same" | "too little data" | "not kept";
            requests: components["schemas"]["VerdictTraffic"];
            error_rate: components["schemas"]["VerdictMetric"];
            p95: components["schemas"]["VerdictMetric"];
        };
        /** @description Requests after a deploy and before; never judged. */
        VerdictTraffic: {
            after: number;
            before: number;
            after_per_second: number;
            before_per_second: number;
            /** @description The ratio of the rates; null if there were none before. */
            ratio: number | null;
        };
        /** @description A window of time: [since, until). */
        VerdictWindow: {
            since: number;
            until: number;
        };
        /** @description The window of an answer: [start, end). */
        Window: {
            precision: number;
            start: number;
            end: number;
            /** @description Whether the compared period is kept as well. */
            before: boolean;
            /** @description The precision by which the compared period is read, and where it begins. */
            before_precision: number | null;
            before_start: number | null;
            /** @description The precision of histograms, and the start of their window. */
            histograms: number;
            histograms_start: number;
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
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    overview: {
        parameters: {
            query?: {
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Start of the window, Unix seconds. */
                since?: number;
                /** @description End of the window, Unix seconds; else now. */
                until?: number;
                /** @description The period that figures are compared with. */
                against?: "previous" | "yesterday" | "last-week";
                /** @description A series for the chart. */
                series?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OverviewAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    series: {
        parameters: {
            query: {
                /** @description A series. */
                name: string[];
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Omit intervals that end before, Unix seconds. */
                since?: number;
                /** @description Omit intervals that start after, Unix seconds. */
                until?: number;
                /** @description Only label sets with this label, LABEL=VALUE. */
                label?: string[];
                /** @description Split one name by the values of this label. */
                by?: string[];
                /** @description 1: only the series stored under the name, read without the index. */
                exact?: 0 | 1;
                /** @description How to aggregate the label sets of a gauge. */
                aggregate?: "sum" | "min" | "max" | "mean";
                /** @description Kind of the series. */
                kind?: "counter" | "gauge";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SeriesAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    names: {
        parameters: {
            query?: {
                /** @description `*` any text, `?` one character, `[abc]`. */
                pattern?: string;
                /** @description Kind of the series. */
                kind?: "counters" | "gauges" | "histograms";
                /** @description Number of names. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamesAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    top: {
        parameters: {
            query?: {
                /** @description With `by` a name without labels; without, a pattern. */
                name?: string;
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description A label to group by. */
                by?: string;
                /** @description The order; percentiles as p95. */
                order?: string;
                /** @description Number of newest intervals; default 60, or all that are kept. */
                intervals?: number;
                /** @description Number of rows. */
                limit?: number;
                /** @description Only label sets with this label, LABEL=VALUE. */
                label?: string[];
                /** @description With order=failing: the label of failures, e.g. status=5xx. */
                failing?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    summary: {
        parameters: {
            query: {
                /** @description A histogram. */
                name: string[];
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Omit intervals that end before, Unix seconds. */
                since?: number;
                /** @description Omit intervals that start after, Unix seconds. */
                until?: number;
                /** @description Only label sets with this label, LABEL=VALUE. */
                label?: string[];
                /** @description Split one name by the values of this label. */
                by?: string[];
                /** @description 1: only the series stored under the name, read without the index. */
                exact?: 0 | 1;
                /** @description Quantiles; else 0.5 and 0.95. */
                q?: number[];
                /** @description Also return the share of values above it. */
                threshold?: number;
                /** @description 1: also for each interval. */
                over_time?: 0 | 1;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SummaryAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    messages: {
        parameters: {
            query?: {
                /** @description Only this logger. */
                logger?: string;
                /** @description Only these severities. */
                severity?: string[];
                /** @description Number of messages, and patterns. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagesAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    exceptions: {
        parameters: {
            query?: {
                /** @description Omit intervals that end before, Unix seconds. */
                since?: number;
                /** @description Omit intervals that start after, Unix seconds. */
                until?: number;
                /** @description Width of an interval: 300, 3600 or 86400 seconds; default: the finest that reaches `since`. */
                precision?: number;
                /** @description Only groups that were seen on this route. */
                route?: string;
                /** @description The order. */
                sort?: "count" | "last" | "first";
                /** @description Number of groups. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExceptionsAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    exception: {
        parameters: {
            query: {
                /** @description ID of the group. */
                id: string;
                /** @description Omit intervals that end before, Unix seconds. */
                since?: number;
                /** @description Omit intervals that start after, Unix seconds. */
                until?: number;
                /** @description Width of an interval: 300, 3600 or 86400 seconds; default: the finest that reaches `since`. */
                precision?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExceptionAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    marks: {
        parameters: {
            query?: {
                /** @description Start, Unix seconds. */
                since?: number;
                /** @description End, Unix seconds. */
                until?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MarksAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    verdict: {
        parameters: {
            query?: {
                /** @description Label of a mark; without it and `since`, the newest mark. */
                mark?: string;
                /** @description The moment of the deploy, Unix seconds, without a mark. */
                since?: number;
                /** @description The baseline: right before, or the same time of another day. */
                against?: "previous" | "yesterday" | "last-week";
                /** @description Width of an interval, seconds; default 60, and 3600 for another day. */
                precision?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VerdictAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    pages: {
        parameters: {
            query?: {
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Start of the window, Unix seconds. */
                since?: number;
                /** @description End of the window, Unix seconds; else now. */
                until?: number;
                /** @description The period that figures are compared with. */
                against?: "previous" | "yesterday" | "last-week";
                /** @description The order. */
                order?: "count" | "p95" | "failing" | "total";
                /** @description Number of routes. */
                limit?: number;
                /** @description Number of routes to skip. */
                offset?: number;
                /** @description Only routes that contain this text. */
                filter?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PagesAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    counters: {
        parameters: {
            query?: {
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Start of the window, Unix seconds. */
                since?: number;
                /** @description End of the window, Unix seconds; else now. */
                until?: number;
                /** @description The period that figures are compared with. */
                against?: "previous" | "yesterday" | "last-week";
                /** @description `*` any text, `?` one character, `[abc]`. */
                pattern?: string;
                /** @description Kind of the series. */
                kind?: "counters" | "gauges" | "histograms";
                /** @description 1: one row for all label sets of a name. */
                grouped?: 0 | 1;
                /** @description The order. */
                order?: "name" | "count" | "change";
                /** @description Number of rows. */
                limit?: number;
                /** @description Number of rows to skip. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CountersAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    detail: {
        parameters: {
            query: {
                /** @description A series, with its labels. */
                name: string;
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Start of the window, Unix seconds. */
                since?: number;
                /** @description End of the window, Unix seconds; else now. */
                until?: number;
                /** @description The period that figures are compared with. */
                against?: "previous" | "yesterday" | "last-week";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DetailAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    forecast: {
        parameters: {
            query: {
                /** @description A series, with its labels. */
                name: string;
                /** @description Width of an interval, seconds: one that the store keeps; the error lists them. */
                precision?: number;
                /** @description Only label sets with this label, LABEL=VALUE. */
                label?: string[];
                /** @description 1: only the series stored under the name, read without the index. */
                exact?: 0 | 1;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForecastAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    explain: {
        parameters: {
            query: {
                /** @description A counter or a histogram; labels filter. */
                name: string;
                /** @description Start of the window, Unix seconds; else 15 min. */
                since?: number;
                /** @description End of the window, Unix seconds; else now. */
                until?: number;
                /** @description Compare with as long right before (default), or the same time a day or week ago. */
                baseline?: "before" | "yesterday" | "week";
                /** @description Start of another baseline, Unix seconds. */
                baseline_since?: number;
                /** @description End of another baseline, Unix seconds. */
                baseline_until?: number;
                /** @description Width of an interval; else the finest that keeps the window. */
                precision?: number;
                /** @description Only label sets with this label, LABEL=VALUE. */
                label?: string[];
                /** @description Explain the share of events with this label, e.g. status=5xx. */
                failing?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthAnswer"];
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description A parameter cannot be used. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks has not said who that is. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description Who asks may not. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The query is too long. */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The Host header names somebody else. */
            421: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
            /** @description The store is away; Retry-After says when to ask again. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LivenessAnswer"];
                };
            };
            /** @description It does not. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LivenessAnswer"];
                };
            };
        };
    };
}
