"""What each Python of tools/clocks imports first: time.sleep() that works under libfaketime.

With the monotonic clock left alone, as servers and processes of other clocks need it, libfaketime
refuses the sleep until a time that Python asks for.
"""

import select
import time


def _sleep(seconds: float) -> None:
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    select.select([], [], [], seconds)


time.sleep = _sleep  # type: ignore[assignment]
