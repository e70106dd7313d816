"""Text formats of other systems: pure, without I/O."""
