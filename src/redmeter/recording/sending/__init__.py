"""Sending: when a recorder flushes, and how its buffer gets to each server, every event once."""
