"""The HTTP API: its endpoints by area, the shapes of their answers, and Prometheus' API."""
