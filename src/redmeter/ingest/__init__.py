"""Bytes in and out: files and streams of other programs, and output for them."""
