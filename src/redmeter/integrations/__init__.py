"""Integrations: one module for each framework or library, imported only where it is used."""
