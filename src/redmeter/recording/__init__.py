"""The way in: what happens in the application becomes numbered batches."""
