"""Reads of PromQL queries."""
