"""A real Prometheus with generated samples, on loopback."""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from redmeter.promql.semantics import SampledSeries
from redmeter.promql.values import METRIC_NAME, LabelSet, format_float, without
from support.servers import free_port


def found() -> bool:
    """Return whether Prometheus and promtool are on PATH."""
    return bool(shutil.which("prometheus") and shutil.which("promtool"))


class PrometheusServer:
    """A Prometheus whose storage holds some series; does nothing where none is installed.

    Args:
        series: of floats.
    """

    def __init__(self, series: Iterable[SampledSeries]) -> None:
        self._series = series
        self._process: subprocess.Popen[bytes] | None = None
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._address = ""

    def __enter__(self) -> Self:
        if not found():
            return self
        self._home = tempfile.TemporaryDirectory(prefix="redmeter-prometheus-")
        home = Path(self._home.name)
        text, storage, config = home / "samples", home / "storage", home / "prometheus.yml"
        text.write_text(openmetrics(self._series), encoding="utf-8")
        config.write_text("")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(storage)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={storage}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ]
        )
        deadline = time.monotonic() + 120
        while True:
            with suppress(urllib.error.URLError):
                urllib.request.urlopen(f"{self._address}/-/ready", timeout=5).close()  # noqa: S310
                return self
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Prometheus does not start")
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
        if self._home is not None:
            self._home.cleanup()

    def range(self, query: str, start: int, end: int, step: int) -> dict[str, Any] | str:
        """Return the data of an answer, or the error; times are in milliseconds."""
        try:
            span = {"start": start / 1000, "end": end / 1000, "step": step / 1000}
            answer = self.request("query_range", {"query": query, **span})
            data: dict[str, Any] = json.loads(answer)["data"]
            return data
        except urllib.error.HTTPError as error:
            return str(json.load(error)["error"])

    def request(self, endpoint: str, form: Mapping[str, object]) -> bytes:
        """Return the bytes of an answer.

        Raises:
            HTTPError: Prometheus refuses the query.
        """
        address = f"{self._address}/api/v1/{endpoint}"
        with urllib.request.urlopen(address, urlencode(form).encode(), timeout=60) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content


def openmetrics(series: Iterable[SampledSeries]) -> str:
    """Return samples as text that promtool reads."""
    lines = []
    for one in series:
        name = dict(one.labels)[METRIC_NAME] + _braces(without(one.labels, (METRIC_NAME,)))
        lines += [
            f"{name} {format_float(value)} {at / 1000}"
            for at, value in zip(one.times.tolist(), one.values.tolist(), strict=True)
        ]
    return "\n".join([*lines, "# EOF\n"])


def _braces(labels: LabelSet) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    pairs = ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""
