"""Grafana with Redmeter as a provisioned data source, and the dashboard of the docs.

    pip install "redmeter[prometheus,standard]"
    python run.py

Starts the page, whose address is the data source, and writes Grafana's provisioning folder. If the
program `grafana` is on PATH, it starts too, at http://127.0.0.1:3000/; otherwise the command that
starts it is printed. Needs the folder docs/grafana of a checkout.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "docs" / "grafana"
PORT = int(os.environ.get("PORT", "7380"))
FOLDER = Path(os.environ.get("GRAFANA_DATA") or Path(__file__).parent / "data").resolve()


def provision(folder: Path, port: int) -> dict[str, str]:
    """Write the provisioning folder; return the settings with which Grafana reads it."""
    dashboards = folder / "dashboards"
    for name in ("provisioning/datasources", "provisioning/dashboards", "dashboards"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    source = (SOURCE / "redmeter.yaml").read_text().replace(":7380", f":{port}")
    (folder / "provisioning/datasources/redmeter.yaml").write_text(source)
    provider = (SOURCE / "dashboards.yaml").read_text()
    provider = provider.replace("/var/lib/grafana/dashboards/redmeter", str(dashboards))
    (folder / "provisioning/dashboards/redmeter.yaml").write_text(provider)
    shutil.copy(SOURCE / "dashboard.json", dashboards)
    return {
        "GF_PATHS_PROVISIONING": str(folder / "provisioning"),
        "GF_PATHS_DATA": str(folder / "grafana"),
        "GF_SERVER_HTTP_ADDR": "127.0.0.1",
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
    }


def main() -> None:
    """Run the page, and Grafana if it is there, until SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = provision(FOLDER, PORT)
    page = [sys.executable, "-m", "redmeter", "up", "--port", str(PORT)]
    started = [subprocess.Popen(page)]
    grafana = shutil.which("grafana")
    if grafana:
        started.append(subprocess.Popen([grafana, "server"], env=os.environ | settings))
    else:
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
        print(f"Grafana is not on PATH. With it:\n{words} grafana server", flush=True)
    try:
        started[0].wait()
    except KeyboardInterrupt:
        pass
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
