"""Serves the shop by two workers: `python -m redmeter.demo.server PORT`."""

import sys

import uvicorn

from redmeter.demo.orphans import end_with_starter

WORKERS = 2


def main(port: int) -> None:
    """Serve until SIGTERM; SIGHUP replaces the workers, one after the other."""
    end_with_starter()
    uvicorn.run(
        "redmeter.demo.shop:create",
        factory=True,
        port=port,
        workers=WORKERS,
        log_level="warning",
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
