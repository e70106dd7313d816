"""The HTTP API: its table of endpoints, their handlers, and Prometheus' API."""
