"""What hangs in an application: one module for each library, imported by whoever uses it."""
