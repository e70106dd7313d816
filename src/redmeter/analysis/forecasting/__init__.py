"""Forecasts: habits by the day and week, and ranges."""
