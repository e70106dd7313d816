"""Bytes in and out: files and streams that others write, and what is made for others to read."""
