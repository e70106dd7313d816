"""Reads of messages and their patterns."""
