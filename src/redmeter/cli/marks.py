"""mark: set marks, such as deploys, and list them."""

import subprocess
from typing import Annotated

import typer

from redmeter import settings
from redmeter.cli import output
from redmeter.cli.app import NOT_FOUND, AsJson, Prefix, Url, command, fail, opened_store
from redmeter.cli.completion import complete_marks
from redmeter.errors import InvalidSetting
from redmeter.maintenance import forgetting
from redmeter.queries import Queries
from redmeter.recording.sync import check_written
from redmeter.store import Store
from redmeter.stored import mark as kind
from redmeter.stored.mark import mark_operations

#: How long git may take, seconds.
_GIT_SECONDS = 5.0
#: Part of git's error outside of a repository that does not help.
_PARENTS = " (or any of the parent directories): .git"


@command(
    name="mark",
    epilog="Examples: redmeter mark v1.4.2 · redmeter mark (the commit, from git) · "
    "redmeter mark --list · redmeter mark --remove v1.4.2",
)
def mark(
    label: Annotated[
        str | None,
        typer.Argument(
            help="Default: REDMETER_RELEASE, or the output of git describe.",
            autocompletion=complete_marks,
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the marks, newest first.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove all marks with this label.")
    ] = False,
    url: Url = None,
    prefix: Prefix = None,
    json: AsJson = False,
) -> None:
    """Mark a moment that explains a change, such as a deploy.

    The same label within ten minutes is the same mark, so every host of a deploy may set it.
    Returning to an earlier label after another one is a new mark. Without a label, the release is
    marked once, until another release follows. Marks are kept for 90 days, and are shown above the
    charts of series and summary.
    """
    if listed:
        if label is not None or remove:
            raise InvalidSetting("--list", "lists all; omit the label and --remove")
        with opened_store(url, prefix, reading=True) as store:
            _list(store, json=json)
        return
    if remove:
        if label is None:
            raise InvalidSetting("--remove", "needs the label: redmeter mark --remove v1.4.2")
        with opened_store(url, prefix) as store:
            _remove(store, label, json=json)
        return
    release = label is None
    if label is None:
        label = settings.resolve("release") or _described()
    text = kind.clean_label(label)
    with opened_store(url, prefix, create=True) as store:
        time = store.clock.wall()
        part = store.shard("")
        outcome = part.write(
            lambda _: mark_operations(part.keys, [kind.Noted(time, text, release)])
        )
        check_written(outcome, store.location)
    # A batch that was sent twice gets the reply to the first one.
    new = any(answer == "1" for _, answer in outcome.answers)
    if json:
        output.print_json({"label": text, "time": round(time, 3), "new": new})
    elif new:
        output.line(f"marked: {text}")
    elif release:
        output.line(f"marked already: {text}")
    else:
        minutes = kind.NEAR_SECONDS // 60
        output.line(f"marked already, within {minutes} minutes: {text}")


def _remove(store: Store, label: str, *, json: bool) -> None:
    number = forgetting.forget_mark(store, label)
    text = kind.clean_label(label)
    if not number:
        fail(f"there is no mark {text}", NOT_FOUND, "redmeter mark --list lists all")
    if json:
        output.print_json({"label": text, "removed": number})
    else:
        output.line(f"removed: {text} ({output.many(number, 'mark')})")


def _list(store: Store, *, json: bool) -> None:
    marks = Queries(store).marks()[::-1]
    if json:
        output.print_json({"marks": [{"time": one.time, "label": one.label} for one in marks]})
    elif marks:
        output.table(["TIME (UTC)", "LABEL"], [(output.time_text(m.time), m.label) for m in marks])
    if not marks:
        fail("there are no marks yet", NOT_FOUND, "redmeter mark LABEL sets one")


def _described() -> str:
    """Return the output of git describe for the working directory: a tag, a commit, or both."""
    words = ("git", "describe", "--always", "--dirty", "--tags")
    try:
        done = subprocess.run(words, capture_output=True, timeout=_GIT_SECONDS, check=True)
    except FileNotFoundError:
        problem = "there is no git"
    except subprocess.TimeoutExpired:
        problem = f"git gave no answer within {_GIT_SECONDS:.0f} s"
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        text = lines[-1].replace(_PARENTS, "") if lines else ""
        problem = f"git: {output.safe(text)[:200]}" if text else "git failed"
    else:
        text = done.stdout.decode(errors="replace").strip()
        if text:
            return text
        problem = "git describes nothing"
    raise InvalidSetting("LABEL", f"{problem}: give one, e.g. redmeter mark v1.4.2")
