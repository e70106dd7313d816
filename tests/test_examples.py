"""Each example starts with its one command, records its events, and ends."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from redmeter import Meter
from support.programs import Program, Programs
from support.servers import Server, free_port
from support.waiting import eventually

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
WEB = ("fastapi_shop/app.py", "flask_shop/app.py", "django_celery/run.py")

pytestmark = pytest.mark.slow


@pytest.fixture
def port() -> int:
    """A free port."""
    return free_port()


@pytest.fixture
def programs(server: Server, tmp_path: Path) -> Iterator[Programs]:
    """Starts examples in an empty folder; they end with it."""
    with Programs(tmp_path, server.url) as programs:
        yield programs


@pytest.fixture
def meter(server: Server) -> Iterator[Meter]:
    """Reads their events."""
    with Meter(server.url) as meter:
        yield meter


def start(programs: Programs, name: str, port: int, **env: str) -> Program:
    """Start an example on that port."""
    places = {"REDMETER_URL": programs.url, "PORT": str(port)}
    return programs.command(sys.executable, str(EXAMPLES / name), env=places | env)


def end(program: Program, *codes: int) -> None:
    """End an example as a supervisor does."""
    program.send(signal.SIGTERM)
    done = program.finish()
    assert done.code in codes, done.err


def answered(url: str, program: Program) -> httpx.Response:
    """Return the answer of a server, once it is up."""

    def ask() -> httpx.Response | None:
        assert program.running, program.err
        try:
            return httpx.get(url, trust_env=False)
        except httpx.TransportError:
            return None

    response = eventually(ask, 60.0)
    assert isinstance(response, httpx.Response)
    return response


def test_each_example_is_listed_and_tested() -> None:
    """In the table of examples/README.md, with its command."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - {"__pycache__"}
    listed = [line.split("`")[1].split("/")[1] for line in page.splitlines() if "`python" in line]
    assert sorted(listed) == sorted(folders)
    source = Path(__file__).read_text(encoding="utf-8")
    assert [folder for folder in folders if f'"{folder}/' not in source] == []


@pytest.mark.parametrize("name", WEB)
def test_a_shop_counts_requests_and_shows_them(
    name: str, programs: Programs, port: int, meter: Meter, tmp_path: Path
) -> None:
    """Its own counter, and its routes; the page is at /metrics/."""
    program = start(programs, name, port, SHOP_DATA=str(tmp_path / "data"))
    root = f"http://127.0.0.1:{port}"
    assert "/metrics/" in answered(f"{root}/", program).text
    statuses = [httpx.post(f"{root}/orders/7", trust_env=False).status_code for _ in range(3)]
    assert statuses == [200, 200, 200]
    eventually(lambda: meter.total("orders") == 3, 30.0)
    eventually(lambda: meter.total("http_requests", labels={"method": "POST"}) == 3, 30.0)
    page = httpx.get(f"{root}/metrics/", trust_env=False)
    assert (page.status_code, "<title>" in page.text) == (200, True)
    names = httpx.get(f"{root}/metrics/api/names", trust_env=False).json()["names"]
    assert "orders" in names
    if "celery" in name:
        assert httpx.post(f"{root}/orders/9", trust_env=False).status_code == 200
        for state, runs in (("success", 3), ("failure", 1)):
            labels = {"task": "shop.send_confirmation", "state": state}
            eventually(lambda: meter.total("task_runs", labels=labels) == runs, 60.0)  # noqa: B023
    else:
        assert httpx.post(f"{root}/orders/7", trust_env=False).status_code == 409
        eventually(lambda: [m.text for m in meter.log_messages("shop.orders")], 30.0)
    end(program, 0, -signal.SIGTERM)


def test_the_script_records_all_that_it_did(programs: Programs, port: int, meter: Meter) -> None:
    """Before it ends."""
    done = start(programs, "script/nightly.py", port).finish()
    assert (done.code, done.out, done.err) == (0, "37 sent, 3 failed\n", "")
    assert meter.total("invoices", labels={"result": "sent"}) == 37
    assert meter.total("invoices", labels={"result": "failed"}) == 3
    assert meter.summary("invoice_seconds", last="10m").count == 40
    assert len(meter.log_messages("nightly")) == 3
    assert [mark.label for mark in meter.marks()] == ["nightly"]


def test_an_alert_reaches_the_webhook(programs: Programs, port: int) -> None:
    """Signed, with its message."""
    program = start(programs, "alerts/run.py", port)
    assert program.line(0).startswith("firing: checkout-errors: 20.0% of checkouts fail")
    end(program, 0)


def test_grafana_is_provisioned_with_a_page_that_answers(
    programs: Programs, port: int, meter: Meter, tmp_path: Path
) -> None:
    """Without the program `grafana`: the files, and the address that they name."""
    meter.count("orders")
    meter.flush()
    folder = tmp_path / "data"
    without = {"PATH": str(tmp_path), "GRAFANA_DATA": str(folder)}
    program = start(programs, "grafana/run.py", port, **without)
    source = _yaml(folder / "provisioning/datasources/redmeter.yaml", program)
    (row,) = source["datasources"]
    answer = answered(f"{row['url']}/api/v1/query?query=orders_total", program).json()
    assert [one["value"][1] for one in answer["data"]["result"]] == ["1"]
    (provider,) = _yaml(folder / "provisioning/dashboards/redmeter.yaml", program)["providers"]
    assert [file.name for file in Path(provider["options"]["path"]).iterdir()] == ["dashboard.json"]
    assert f"GF_PATHS_PROVISIONING={folder}/provisioning" in "".join(program.out)
    end(program, 0)


def _yaml(file: Path, program: Program) -> Any:
    eventually(lambda: file.exists() and bool(program.out), 30.0)
    return yaml.safe_load(os.path.expandvars(file.read_text(encoding="utf-8")))
