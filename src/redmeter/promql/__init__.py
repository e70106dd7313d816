"""PromQL, evaluated over any stored data.

The package does no I/O: an Engine asks a Semantics object for selectors and range functions, and
does the rest. Intervals is the semantics of a store of intervals; that of Prometheus over raw
samples is in tests/promql/engine_tests, which runs its test scripts.

It needs the extra redmeter[prometheus]; nothing else imports it.
"""

from redmeter.extras import needs

with needs("prometheus", "PromQL"):
    import numpy as _numpy  # noqa: F401
    import promql_parser as _promql_parser  # noqa: F401
