"""Log messages: fingerprinted, redacted, and counted by pattern."""
