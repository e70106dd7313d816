"""Methods that compare two windows, or one series with its past."""
