"""One file per kind of record: its keys, its operations, how two of it merge. Pure."""
