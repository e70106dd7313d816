"""What tests start and end: as a context manager, ended also where it did not start whole."""

from types import TracebackType
from typing import Self


class Started:
    """Something with a start() and a close()."""

    def start(self) -> Self:
        """Start it."""
        raise NotImplementedError

    def close(self) -> None:
        """End all of it that runs."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
