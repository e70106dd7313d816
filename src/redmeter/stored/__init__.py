"""The stored format, one file per kind of record: its keys, its operations and its merge. Pure."""
