"""A shop in Django with a Celery worker, and the metrics page of both at /metrics/.

    pip install "redmeter[standard]" django celery
    python run.py

Then open http://127.0.0.1:8000/metrics/ and send requests: curl -X POST 127.0.0.1:8000/orders/7
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

FOLDER = Path(__file__).parent
PORT = int(os.environ.get("PORT", "8000"))


class Server(ThreadingMixIn, WSGIServer):
    """Answers requests in threads."""

    daemon_threads = True


def main() -> None:
    """Start the worker, then serve until SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    command = ["-m", "celery", "-A", "shop:celery", "worker", "--pool", "solo", "-l", "warning"]
    worker = subprocess.Popen([sys.executable, *command], cwd=FOLDER)
    try:
        from shop import application

        with make_server("127.0.0.1", PORT, application, Server) as server:
            print(f"serving at http://127.0.0.1:{PORT}/", flush=True)
            server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
