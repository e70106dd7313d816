"""Alerts: rules in a TOML file, their evaluation, and notifications that survive restarts."""
