"""Metrics as Prometheus scrapes them: its text format 0.0.4, and OpenMetrics 1.0.

Stored labels are in Prometheus' syntax already, so a line consists of the metric
name, the stored labels and the value.

Pure: no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from redmeter.expressions import late
from redmeter.formats.prometheus_names import COUNTER, Catalog, Exported, metric_name

OPENMETRICS = "application/openmetrics-text"
TEXT = "text/plain"
#: The family that counts series that are not exported.
HIDDEN = "redmeter_not_exported_series"

_PARAMETER = late(r"([^=\s;]+)\s*=\s*\"?([^\";]*)\"?")
#: Labels that are not exported as they are stored: without a value, or of a reserved name.
_CHANGED = late(r'=""|[{,]__')


@dataclass(frozen=True)
class Format:
    """What a scraper accepts."""

    #: OpenMetrics instead of the text format.
    openmetrics: bool = False
    #: Names as they are stored, in quotes where necessary, instead of underscores.
    utf8: bool = False

    @property
    def content_type(self) -> str:
        """The Content-Type of the answer."""
        escaping = "allow-utf-8" if self.utf8 else "underscores"
        if self.openmetrics:
            return f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping={escaping}"
        version = "1.0.0" if self.utf8 else "0.0.4"
        return f"{TEXT}; version={version}; charset=utf-8; escaping={escaping}"


def negotiated(accept: str) -> Format:
    """Return the format that an Accept header prefers; the text format if it names none."""
    best, weight = Format(), 0.0
    for item in accept.split(","):
        media_type, _, rest = item.strip().partition(";")
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            continue
        version, media_type = parameters.get("version"), media_type.strip().lower()
        utf8 = parameters.get("escaping") == "allow-utf-8"
        if media_type == OPENMETRICS and version in (None, "1.0.0", "0.0.1"):
            offer = Format(True, utf8 and version == "1.0.0")
        elif media_type == TEXT and version in (None, "1.0.0", "0.0.4"):
            offer = Format(False, utf8 and version == "1.0.0")
        else:
            continue
        if quality > weight:
            best, weight = offer, quality
    return best


class _Family(NamedTuple):
    name: str
    kind: str
    help: str
    lines: list[str]
    #: Whether the name needs no quotes.
    plain: bool = True


def exposition(
    catalog: Catalog,
    values: Mapping[str, Mapping[str, float]],
    form: Format,
    hidden: Mapping[str, int],
) -> str:
    """Return the text of a scrape.

    Args:
        catalog: the series.
        values: kind -> stored name -> value. Series without a value are left out.
        form: the format.
        hidden: reason -> how many series are not exported.
    """
    families: dict[str, _Family] = {}
    for one in catalog:
        value = values.get(one.kind, {}).get(one.stored)
        if value is None:
            continue
        name = _utf8_name(one) if form.utf8 else one.name
        family = families.get(name)
        if family is None:
            text = f"{one.kind} {one.base}".replace("\\", r"\\").replace("\n", r"\n")
            plain = metric_name(name) == name
            family = families[name] = _Family(name, one.kind, text, [], plain)
        family.lines.append(f"{_series(family, one)} {value!r}")
    if hidden:
        text = "Series of the store that are not exported, by reason"
        lines = [f'{HIDDEN}{{reason="{reason}"}} {count}' for reason, count in hidden.items()]
        families[HIDDEN] = _Family(HIDDEN, "gauge", text, lines)
    parts = [_written(families[name], form) for name in sorted(families)]
    return "".join(parts) + ("# EOF\n" if form.openmetrics else "")


def _written(family: _Family, form: Format) -> str:
    name = family.name
    if form.openmetrics and family.kind == COUNTER:
        name = name.removesuffix("_total")
    name = name if family.plain else _quoted(name)
    head = f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
    return head + "\n".join(family.lines) + "\n"


def _series(family: _Family, one: Exported) -> str:
    labels = one.stored[len(one.base) :]
    if _CHANGED.search(labels):
        labels = ",".join(f"{label}={_quoted(value)}" for label, value in one.labels)
        labels = f"{{{labels}}}" if labels else ""
    if family.plain:
        return family.name + labels
    rest = f",{labels[1:]}" if labels else "}"
    return f"{{{_quoted(family.name)}{rest}"


def _utf8_name(one: Exported) -> str:
    """Return a metric name with the characters of the stored one."""
    suffix = one.name[len(metric_name(one.base)) :]
    return one.base + suffix


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
