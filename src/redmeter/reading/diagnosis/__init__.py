"""Reads that answer why something changed."""
