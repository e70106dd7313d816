"""Runs PromQL test scripts in the format of Prometheus' `promqltest`."""
