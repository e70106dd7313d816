"""The thread that cleans a store while an application serves requests: maintenance/cleaning.py."""

import logging
import os
import threading

from redmeter import Meter, settings
from redmeter.errors import RedmeterError
from redmeter.integrations.shared.interface import Instrumentation
from redmeter.maintenance import cleaning

logger = logging.getLogger("redmeter")


class Cleaner:
    """A thread that cleans a meter's store every minute. `meter.close()` ends it.

    Any number of processes may have one. An error is logged, and ends it unless it passes.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = Instrumentation(meter)
        self._pid = 0
        #: Changes with each start; None after stop(). Not an Event: a fork may copy its lock while
        #: it is held.
        self._run: object = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it, unless it was started in this process before; stop() permits another start.

        Called with each request: servers fork, and threads stay behind then.
        """
        pid = os.getpid()
        if self._meter.store is None or (self._run is not None and self._pid == pid):
            return
        self._pid, self._run = pid, object()
        self._thread = threading.Thread(
            target=self._clean, args=(self._run,), name="redmeter-cleaner", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:  # a limit of the machine
            logger.error("redmeter cannot start a thread for its cleaner: %s", error)
            self._thread = None
        else:
            self._meter.add_helper(self)

    def stop(self, timeout: float = 1.0) -> None:
        """End it, and wait at most so many seconds for that."""
        if self._pid == os.getpid():
            self._run = None
            self._meter.remove_helper(self)
            if self._thread is not None:
                self._thread.join(timeout)

    def _clean(self, run: object) -> None:
        store = self._meter.store
        assert store is not None, "start() looks"
        try:
            cleaning.clean_every_minute(
                store,
                quit=lambda: self._run is not run,
                store_bytes=settings.resolve("store_bytes"),
            )
        except RedmeterError as error:
            logger.error("redmeter stops cleaning: %s", error)
