"""Reads of whole stores: listings, /metrics, rows."""
