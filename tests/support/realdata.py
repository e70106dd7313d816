"""The real access log, which lies beside the project and is no part of it."""

import os
from pathlib import Path

import pytest

_REAL_LOG = Path(__file__).parents[3] / "shared/data/apache_access.log"


def real_log() -> Path:
    """Return the path of the real access log; without it skip the test, or fail in CI."""
    if not _REAL_LOG.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"missing: {_REAL_LOG}")
        pytest.skip(f"missing: {_REAL_LOG}")
    return _REAL_LOG
