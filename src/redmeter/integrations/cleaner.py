"""The thread that cleans a store while an application serves requests, see redmeter/cleaning.py."""

import logging
import os
import threading

from redmeter import Meter, cleaning
from redmeter.errors import RedmeterError
from redmeter.integrations.interface import Instrumentation

logger = logging.getLogger("redmeter")


class Cleaner:
    """A thread that cleans a meter's store every minute, see cleaning.py. `meter.close()` ends it.

    Any number of processes may run one. Errors are logged; a permanent one ends the thread.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = Instrumentation(meter)
        #: Set by stop(). Not an Event: a fork may copy its lock while it is held.
        self.stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._meter.store is None or (self._thread and self._thread.is_alive()):
            return
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name="redmeter-cleaner", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # a limit of the machine
            logger.error("redmeter cannot start a thread for its cleaner: %s", error)
            self._thread = None
        else:
            self._meter.add_helper(self)

    def stop(self, timeout: float = 1.0) -> None:
        """End the thread, and wait for that, `timeout` seconds at most."""
        self.stopped = True
        self._meter.remove_helper(self)
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        store = self._meter.store
        assert store is not None, "start() looks"
        try:
            cleaning.run(store, quit=lambda: self.stopped)
        except RedmeterError as error:
            logger.error("redmeter stops cleaning: %s", error)


class CleanerOfEachProcess:
    """A cleaner of a meter's store for each process that serves requests.

    The first request of a process starts it, since servers fork, which ends threads; and so does
    the first request after it was stopped.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._pid = 0
        self._cleaner = Cleaner(meter)

    def see_to(self) -> None:
        """Start it, unless it runs in this process."""
        pid = os.getpid()
        if pid != self._pid or self._cleaner.stopped:
            self._pid = pid
            self._cleaner = Cleaner(self._meter)
            self._cleaner.start()

    def stop(self) -> None:
        """End this process's cleaner, and wait 1 s for that at most. see_to() starts another."""
        if self._pid == os.getpid():
            self._cleaner.stop()
