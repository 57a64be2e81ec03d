"""Arrow columns as batches and segments."""
