"""The real access log, which is not part of the project.

REDMETER_TEST_REALDATA names the folder that holds it; the default is ../shared/data next to the
checkout. Tests that cannot do without it are marked `realdata`.
"""

import os
from pathlib import Path

import pytest

#: Environment variable that names the folder.
NAMED = "REDMETER_TEST_REALDATA"

#: The folder, which may not exist.
FOLDER = Path(os.environ.get(NAMED) or Path(__file__).parents[3] / "shared" / "data")

#: The access log of a real web server, of May 2015: 10,000 lines.
REAL_LOG = FOLDER / "apache_access.log"

#: The small log of the repository, for what works with either.
OWN_LOG = Path(__file__).parents[1] / "data" / "access.log"


def real_log() -> Path:
    """Return the path of the real access log; skip the test where there is none.

    Where REDMETER_TEST_REALDATA names a folder, a missing log is a failure.
    """
    if not REAL_LOG.exists():
        if os.environ.get(NAMED):
            pytest.fail(f"missing: {REAL_LOG}, of {NAMED}")
        pytest.skip(f"missing: {REAL_LOG}: set {NAMED} to the folder that holds it")
    return REAL_LOG


def any_log() -> Path:
    """Return the real access log, or the small one of the repository where there is none."""
    return REAL_LOG if REAL_LOG.exists() else OWN_LOG
