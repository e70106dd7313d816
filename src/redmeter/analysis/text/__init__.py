"""Texts: patterns, statements, secrets."""
