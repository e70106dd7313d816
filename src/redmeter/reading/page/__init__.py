"""Reads that the page alone needs."""
