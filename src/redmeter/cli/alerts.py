"""alerts: show, check, run, replay and silence alerts."""

import contextlib
import dataclasses
import enum
import os
import secrets
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from redmeter.alerting.conditions import NO_DATA, RuleReader
from redmeter.alerting.evaluator import (
    CYCLE_SECONDS,
    Evaluator,
    Replay,
    replay_rule,
    sample_message,
)
from redmeter.alerting.mistakes import InvalidRules, Mistake, names_text
from redmeter.alerting.notifiers import NotDelivered, send
from redmeter.alerting.rules import Rules, matches_alert, names_alert
from redmeter.alerting.rules_file import parse_rules
from redmeter.alerting.state import FIRED, MAX_RULE_ALERTS
from redmeter.alerting.status import RuleStatus, make_status
from redmeter.alerting.store import AlertSnapshot, AlertStore, Notice, Silence
from redmeter.alerting.values import MAX_DURATION, url_mistake
from redmeter.analysis.comparing.changes import KNOWN_SEVERITIES
from redmeter.cli import output
from redmeter.cli.app import (
    NOT_FOUND,
    AsJson,
    Prefix,
    Timezone,
    Url,
    command,
    duration_option,
    fail,
    opened_store,
)
from redmeter.cli.selectors import time_option
from redmeter.cli.suggestions import series_of_name, suggestion
from redmeter.errors import InvalidSetting, LimitExceeded, StoreError, shown
from redmeter.names import parse_name
from redmeter.queries import Queries
from redmeter.store import Store
from redmeter.stored.keys import Kept, check_times

#: Largest file of alerts, bytes.
_LARGEST = 1_000_000
#: Severities of alerts about which check does not warn.
_SEVERITIES = {"page", "ticket", *KNOWN_SEVERITIES}
#: Longest --interval, seconds.
_LONGEST_INTERVAL = 86400
#: Seconds after a signal in which `run` ends in any case.
_LONGEST_END = 1.2


class Action(enum.StrEnum):
    """What `redmeter alerts` does."""

    list = "list"
    history = "history"
    check = "check"
    replay = "replay"
    run = "run"
    test = "test"
    silence = "silence"
    unsilence = "unsilence"


@command(
    name="alerts",
    epilog="Examples: redmeter alerts · redmeter alerts check --file alerts.toml · "
    "redmeter alerts replay --file alerts.toml --since 2d · "
    "redmeter alerts test ops --file alerts.toml · redmeter alerts run --file alerts.toml · "
    "redmeter alerts silence 'checkout-*' --for 2h --comment 'load test' · "
    "redmeter alerts history --json",
)
def alerts_command(
    action: Annotated[
        Action,
        typer.Argument(
            help="list: states, silences and undelivered notices. history: the newest transitions. "
            "check: read the file; with a URL, warn of rules without data there. "
            "replay: when rules would have fired. run: evaluate them. "
            "test: send a test notice to a notifier. silence, unsilence: stop notifying.",
        ),
    ] = Action.list,
    target: Annotated[
        str | None,
        typer.Argument(
            help="test: a notifier. silence: alerts, with * and ?. unsilence: the silence's ID."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", envvar="REDMETER_ALERTS", help="The TOML file of alerts."),
    ] = None,
    for_: Annotated[str, typer.Option("--for", help="silence: how long, e.g. 30m or 2h.")] = "1h",
    comment: Annotated[str, typer.Option("--comment", help="silence: why.")] = "",
    since: Annotated[
        str | None,
        typer.Option("--since", help="replay: from when, e.g. 2d (ago) or 2026-11-20. Default 1d."),
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", help="run: seconds between two evaluations.")
    ] = f"{CYCLE_SECONDS:.0f}",
    test: Annotated[
        bool, typer.Option("--test", help="check: show each message with sample values.")
    ] = False,
    timezone: Timezone = None,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Show, check, run, replay and silence alerts.

    Alerts are rules in a TOML file, which `run` evaluates. Any number of processes may run the same
    file: one of them evaluates, and another one takes over when it ends. `replay` shows when the
    rules would have fired over the stored data.
    """
    pause = duration_option("--interval", interval, least=1, most=_LONGEST_INTERVAL)
    duration = duration_option("--for", for_, least=1, most=MAX_DURATION)
    if test and action is not Action.check:
        raise InvalidSetting("--test", "only for redmeter alerts check")
    if target is None and action in (Action.test, Action.silence, Action.unsilence):
        missing = {Action.test: "a notifier", Action.silence: "alerts"}.get(action, "an ID")
        raise InvalidSetting(action.value, f"needs {missing}: redmeter alerts {action.value} NAME")
    if target is not None and action not in (Action.test, Action.silence, Action.unsilence):
        raise InvalidSetting(action.value, f"takes no further argument, not {target!r:.40}")
    if action is Action.check:
        kept = _kept(url, prefix)
        checked = _checked(file, kept, json=json)
        warnings = _not_evaluated(checked, url, prefix, timezone) if kept else []
        warnings += _doubts(checked)
        _show_checked(checked, warnings, test=test, json=json)
    elif action is Action.test:
        assert target is not None
        _test(_rules(file), target, json=json)
    else:
        rules = _rules(file) if action in (Action.replay, Action.run) else None
        reading = action in (Action.list, Action.history)
        with opened_store(url, prefix, reading=reading, timezone=timezone) as store:
            match action:
                case Action.list:
                    _list(AlertStore(store).snapshot(), json=json)
                case Action.history:
                    _history(AlertStore(store), json=json)
                case Action.replay:
                    assert rules is not None
                    _replay(store, rules, since, json=json)
                case Action.run:
                    assert rules is not None
                    _run(store, rules, float(pause))
                case Action.silence:
                    assert target is not None
                    _check_known(store, target, file)
                    _silence(store, target, duration, comment, json=json)
                case _:
                    assert target is not None
                    _unsilence(store, target, json=json)


def _kept(url: str | None, prefix: str | None) -> Kept | None:
    """Return the retention of the store that the options name; None if they name none."""
    if url in (None, "", "off"):
        return None
    try:
        with opened_store(url, prefix, reading=True) as store:
            store.read()
            return store.seen
    except StoreError as error:
        output.note(f"the store's retention is not checked: {error}")
        return None


def _rules(file: Path | None, kept: Kept | None = None) -> Rules:
    if file is None:
        reason = "name the file of alerts, or set REDMETER_ALERTS"
        raise InvalidSetting("--file", reason)
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise InvalidSetting("--file", f"{file}: larger than {_LARGEST:,} bytes")
        return parse_rules(content.decode("utf-8-sig"), str(file), kept=kept)
    except OSError as error:
        raise InvalidSetting("--file", f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        mistake = Mistake(str(file), line, "", "", "not UTF-8 text; nothing else is checked yet")
        raise InvalidRules(str(file), [mistake]) from None


def _not_evaluated(
    rules: Rules, url: str | None, prefix: str | None, timezone: str | None
) -> list[str]:
    """Return which rules cannot be evaluated with a store, and why."""
    with opened_store(url, prefix, reading=True, timezone=timezone) as store:
        now = store.read()[0].now
        conditions = RuleReader(Queries(store), store.seen.series, store.seen.histograms)
        missing = _not_recorded(store, rules)
        return [
            f"{rule.name}: {reading.detail}"
            for rule in rules.alerts
            if missing.keys().isdisjoint((rule.metric, rule.of))
            for readings in [conditions.read(rule, now, now)]
            for reading in (*readings.values.values(), readings.others)
            if reading.holds is None or reading.detail.startswith(NO_DATA)
        ] + [
            f"{rule.name}: {missing[metric]}"
            for rule in rules.alerts
            for metric in (rule.metric, rule.of)
            if metric in missing
        ]


def _not_recorded(store: Store, rules: Rules) -> dict[str, str]:
    """Return the metrics of rules whose names have no series, each with a warning."""
    metrics = {metric for rule in rules.alerts for metric in (rule.metric, rule.of) if metric}
    warnings = {}
    for metric in sorted(metrics):
        base = parse_name(metric).base
        with contextlib.suppress(LimitExceeded):  # then there are very many series of it
            if not any(series_of_name(store, base)):
                near = suggestion(store, base)
                warnings[metric] = f"nothing is recorded yet as {shown(base)}; {near}"
    return warnings


def _doubts(rules: Rules) -> list[str]:
    """Return valid entries that are probably mistakes, and settings that this host lacks."""
    doubts = [] if rules.alerts else ["there is no [[alert]]: nothing is evaluated"]
    silent = [rule.name for rule in rules.alerts if not rule.notify]
    if silent:
        doubts.append(f"without notify, so nothing is sent: {names_text(silent)}")
    for rule in rules.alerts:
        if rule.severity not in _SEVERITIES:
            usual = "receivers get it as it is, PagerDuty as warning"
            doubts.append(f"{rule.name}: severity {shown(rule.severity, 40)} is unusual: {usual}")
    used = {name for rule in rules.alerts for name in rule.notify}
    for name, notifier in rules.notifiers.items():
        problems = [] if name in used else ["no alert names it in notify"]
        for option, given in notifier.options.items():
            value = os.environ.get(given, "") if option.endswith("_env") else ""
            if option.endswith("_env") and not value:
                problems.append(f"the variable {given} is not set here")
            elif option == "url_env" and (mistake := url_mistake(value)):
                problems.append(f"the URL in {given} {mistake}")
            elif option == "command" and shutil.which(given[0]) is None:
                problems.append(f"there is no program {shown(given[0], 40)} here")
        doubts += [f"notify.{name}: {problem}" for problem in problems]
    return doubts


def _checked(file: Path | None, kept: Kept | None, *, json: bool) -> Rules:
    try:
        return _rules(file, kept)
    except InvalidRules as error:
        if json:
            mistakes = [dataclasses.asdict(mistake) for mistake in error.mistakes]
            output.print_json({"valid": False, "mistakes": mistakes})
        raise


def _show_checked(rules: Rules, warnings: list[str], *, test: bool, json: bool) -> None:
    messages = dict(map(sample_message, rules.alerts)) if test else {}
    if json:
        document = {
            "alerts": [rule.name for rule in rules.alerts],
            "notifiers": list(rules.notifiers),
            "valid": True,
            "warnings": warnings,
        }
        output.print_json(document | ({"messages": messages} if test else {}))
        return
    if messages:
        output.table(["ALERT", "SAMPLE MESSAGE"], messages.items())
    output.line(
        f"valid: {output.many(len(rules.alerts), 'alert')}, "
        f"{output.many(len(rules.notifiers), 'notifier')}"
    )
    for warning in warnings:
        output.note(f"warning: {warning}")


def _test(rules: Rules, name: str, *, json: bool) -> None:
    notifier = rules.notifiers.get(name)
    if notifier is None:
        known = ", ".join(rules.notifiers) or "there are none"
        fail(f"there is no [notify.{name}]", NOT_FOUND, f"notifiers of the file: {known}")
    now = time.time()
    key = f"test:{secrets.token_hex(8)}"
    notice = Notice(
        number=0,
        key=key,
        incident=key,
        name="test",
        notifier=name,
        status=FIRED,
        severity="info",
        message="This is a test by redmeter alerts test.",
        detail="",
        value=None,
        labels={},
        since=now,
        time=now,
    )
    try:
        send(notifier, notice)
    except NotDelivered as error:
        fail(f"not delivered: {error}", NOT_FOUND, f"look at [notify.{name}] in the file")
    if json:
        output.print_json({"notifier": name, "delivered": True, "key": key})
    else:
        output.line(f"delivered to {name}")


def _list(snapshot: AlertSnapshot, *, json: bool) -> None:
    running = snapshot.leased_until > 0
    status = make_status(snapshot)
    if json:
        output.print_json(
            {
                "running": running,
                "alerts": [
                    {"name": name, **dataclasses.asdict(state)}
                    for name, state in sorted(snapshot.states.items())
                ],
                "rules": [dataclasses.asdict(rule) for rule in status.rules],
                "silences": [dataclasses.asdict(each) for each in snapshot.silences.values()],
                "undelivered": [dataclasses.asdict(notice) for notice in snapshot.notices],
                "troubles": status.troubles,
                "last_trouble": status.last_trouble,
            }
        )
        return
    rows: list[tuple[str, ...]] = [
        (
            alert.name,
            f"{alert.status} (unknown)" if alert.unknown else alert.status,
            output.time_text(alert.since or None),
            alert.unknown or alert.detail,
        )
        for rule in status.rules
        for alert in rule.alerts
    ]
    rows += [
        (rule.name, "unknown" if rule.unknown else "ok", "", rule.unknown or _quiet(rule))
        for rule in status.rules
        if not rule.alerts
    ]
    if rows:
        output.table(["ALERT", "STATUS", "SINCE (UTC)", "DETAIL"], rows)
    else:
        output.line("no alert has fired")
    for rule in status.rules:
        if rule.left_out:
            values = output.many(rule.left_out, f"value of {rule.by}", f"values of {rule.by}")
            output.note(
                f"{rule.name}: {values} beyond the limit of {MAX_RULE_ALERTS} not evaluated"
            )
    for silence in status.silences:
        comment = f" ({silence.comment})" if silence.comment else ""
        until = output.time_text(silence.until, zone=True)
        output.line(f"silence {silence.id}: {silence.alerts} until {until}{comment}")
    for notice in snapshot.notices:
        problem = notice.error or "not sent yet"
        output.line(f"undelivered: {notice.name} to {notice.notifier}: {problem}")
    if status.troubles:
        errors = output.many(sum(status.troubles.values()), "error")
        output.note(f"{errors} of the evaluator itself; the last one: {status.last_trouble}")
    if not running:
        output.note("no evaluator is running: redmeter alerts run --file FILE")


def _quiet(rule: RuleStatus) -> str:
    return f"{rule.ok} by {rule.by}" if rule.by else rule.condition


def _history(store: AlertStore, *, json: bool) -> None:
    transitions = store.transitions()
    if json:
        output.print_json({"transitions": [dataclasses.asdict(each) for each in transitions]})
    elif transitions:
        rows = [
            (output.time_text(each.time), each.name, each.status, each.detail)
            for each in transitions
        ]
        output.table(["TIME (UTC)", "ALERT", "STATUS", "DETAIL"], rows)
    else:
        output.line("no alert has fired")


def _replay(store: Store, rules: Rules, since: str | None, *, json: bool) -> None:
    view, _ = store.read()
    kept = store.seen
    start = time_option("--since", since or "1d", view.now)
    assert start is not None
    check_times(start)
    conditions = RuleReader(Queries(store), kept.series, kept.histograms)
    results: list[Replay] = []
    with output.progress("replaying") as show:
        for number, rule in enumerate(rules.alerts):
            show(number, len(rules.alerts))
            results.append(replay_rule(rule, conditions, start, view.now))
    if json:
        output.print_json(
            {"since": start, "alerts": [dataclasses.asdict(each) for each in results]}
        )
        return
    for result in results:
        times = output.many(len(result.firings), "time")
        if result.since is None:
            output.line(f"{result.name}: unknown: {result.reason}")
            continue
        output.line(
            f"{result.name}: would have fired {times} since {output.time_text(result.since)}"
        )
        for firing in result.firings:
            end = output.time_text(firing.until or None) or "now"
            name = f"{firing.name}: " if firing.name != result.name else ""
            output.line(f"  {name}{output.time_text(firing.since)} to {end}: {firing.detail}")
        if result.unknown:
            share = f"{result.unknown} of {result.evaluated} evaluations"
            output.line(f"  unknown for {share}: {result.reason}")


def _run(store: Store, rules: Rules, interval: float) -> None:
    output.log_warnings()
    stopping = threading.Event()

    def end() -> None:
        output.note("ended while a request to the store was running")
        os._exit(0)

    def stop(*_: Any) -> None:
        if not stopping.is_set():
            forced = threading.Timer(_LONGEST_END, end)
            forced.daemon = True
            forced.start()
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    many = output.many(len(rules.alerts), "alert")
    output.note(f"evaluating {many} at {store.location} every {interval:g} s; Ctrl-C ends it")
    Evaluator(store, rules, interval=interval).run(stopping.wait)
    output.note("ended")


def _check_known(store: Store, pattern: str, file: Path | None) -> None:
    """Check that there are alerts that a pattern matches, now or by the file."""
    snapshot = AlertStore(store).snapshot()
    rules = snapshot.rules.alerts if snapshot.rules else ()
    if names_alert(pattern, rules) or any(matches_alert(name, pattern) for name in snapshot.states):
        return
    if file is not None:
        rules = (*rules, *_rules(file).alerts)
        if names_alert(pattern, rules):
            return
    reason = f"there is no alert {pattern!r:.100}"
    if not rules:
        fix = "no evaluator has run yet: name the file of alerts by --file"
        fail(reason, NOT_FOUND, fix)
    known = names_text(sorted({rule.name for rule in rules}))
    fail(reason, NOT_FOUND, f"alerts: {known}; * and ? match any text, such as 'checkout-*'")


def _silence(store: Store, alerts: str, duration: int, comment: str, *, json: bool) -> None:
    view, _ = store.read()
    silence = Silence(secrets.token_hex(4), alerts, view.now + duration, comment[:200])
    AlertStore(store).silence(silence)
    if json:
        output.print_json({"silence": dataclasses.asdict(silence)})
    else:
        output.line(
            f"silence {silence.id}: {alerts} until {output.time_text(silence.until, zone=True)}"
        )


def _unsilence(store: Store, silence_id: str, *, json: bool) -> None:
    if not AlertStore(store).unsilence(silence_id):
        fail(f"there is no silence {silence_id}", NOT_FOUND, "redmeter alerts lists all")
    if json:
        output.print_json({"removed": silence_id})
    else:
        output.line(f"removed: silence {silence_id}")
