"""Maintenance of a store: cleaning, forgetting, and the memory that each name takes."""
