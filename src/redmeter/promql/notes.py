"""Warnings and infos of an answer, each with the position that caused it, each once."""

import time


def quoted(text: str) -> str:
    """Return a text in double quotes; bytes that are no UTF-8 as \\x escapes."""
    special = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    parts = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            parts.append(f"\\x{ord(character) - 0xDC00:02x}")
        elif character < " " or character == "\x7f":
            parts.append(special.get(character, f"\\x{ord(character):02x}"))
        else:
            parts.append(special.get(character, character))
    return f'"{"".join(parts)}"'


class Notes:
    """Collects annotations. The texts are those of Prometheus, which dashboards look for."""

    def __init__(self) -> None:
        self._warnings: dict[str, None] = {}
        self._infos: dict[str, None] = {}

    @property
    def warnings(self) -> list[str]:
        """Return the warnings in the order of their first occurrence."""
        return list(self._warnings)

    @property
    def infos(self) -> list[str]:
        """Return the infos in the order of their first occurrence."""
        return list(self._infos)

    def warn(self, text: str, position: str) -> None:
        """Add a warning."""
        self._warnings[f"PromQL warning: {text} ({position})"] = None

    def inform(self, text: str, position: str) -> None:
        """Add an info."""
        self._infos[f"PromQL info: {text} ({position})"] = None

    def bad_quantile(self, quantile: str, position: str) -> None:
        """Warn about a quantile outside of 0 to 1."""
        self.warn(f"quantile value should be between 0 and 1, got {quantile}", position)

    def bad_bucket(self, label: str, name: str, position: str) -> None:
        """Warn about a classic histogram's bucket without a valid `le`."""
        what = f'bucket label "le" is missing or has a malformed value of {quoted(label)}'
        self.warn(what + _for_metric(name), position)

    def mixed_samples(self, name: str, position: str) -> None:
        """Warn about floats and histograms within one range."""
        what = f"encountered a mix of histograms and floats for metric name {quoted(name)}"
        self.warn(what, position)

    def mixed_aggregation(self, position: str) -> None:
        """Warn about floats and histograms within one group."""
        self.warn("encountered a mix of histograms and floats for aggregation", position)

    def mixed_histograms(self, name: str, position: str) -> None:
        """Warn about classic and native histograms of one label set."""
        what = "vector contains a mix of classic and native histograms"
        self.warn(what + _for_metric(name), position)

    def no_counter_histogram(self, name: str, position: str) -> None:
        """Warn about the rate of a gauge histogram."""
        self.warn(f"this native histogram metric is not a counter: {quoted(name)}", position)

    def no_gauge_histogram(self, name: str, position: str) -> None:
        """Warn about the delta of a counter histogram."""
        self.warn(f"this native histogram metric is not a gauge: {quoted(name)}", position)

    def possibly_no_counter(self, name: str, position: str) -> None:
        """Inform that a counter's name lacks the usual suffix."""
        what = "metric might not be a counter, name does not end in _total/_sum/_count/_bucket:"
        self.inform(f"{what} {quoted(name)}", position)

    def forced_monotonicity(self, name: str, position: str) -> None:
        """Inform that cumulative bucket counts decreased."""
        what = (
            "input to histogram_quantile needed to be fixed for monotonicity"
            " (see https://prometheus.io/docs/prometheus/latest/querying/functions/"
            "#histogram_quantile)"
        )
        self.inform(what + _for_metric(name), position)

    def nan_observations(self, function: str, effect: str, name: str, position: str) -> None:
        """Inform that a native histogram has observed NaN."""
        what = f"input to histogram_{function} has NaN observations{effect}"
        self.inform(what + _for_metric(name), position)

    def incompatible_types(self, left: str, operator: str, right: str, position: str) -> None:
        """Inform that an operator is not defined for these types of samples."""
        what = "incompatible sample types encountered for binary operator"
        self.inform(f"{what} {quoted(operator)}: {left} {operator} {right}", position)

    def wide_intervals(self, until: int, width: int, window: int, position: str) -> None:
        """Inform that stored intervals are wider than the windows of a rate.

        Args:
            until: the end of the last of them, in milliseconds.
            width, window: milliseconds.
        """
        moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until // 1000))
        what = (
            f"windows of {_duration(window)} before {moment} are averages of stored intervals of"
            f" up to {_duration(width)}; a longer retention of narrower intervals changes that"
        )
        self.inform(what, position)

    def ignored_in_aggregation(self, aggregation: str, position: str) -> None:
        """Inform that an aggregation left histograms out."""
        self.inform(f"ignored histogram in {aggregation} aggregation", position)

    def ignored_in_range(self, name: str, position: str) -> None:
        """Inform that a function left the histograms of a mixed range out."""
        what = "ignored histograms in a range containing both floats and histograms"
        self.inform(f"{what} for metric name {quoted(name)}", position)


def _duration(milliseconds: int) -> str:
    """Return a duration as PromQL writes it, in its largest whole unit."""
    units = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
    for unit, size in units:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _for_metric(name: str) -> str:
    return f" for metric name {quoted(name)}" if name else ""
