"""Keys and values decoded by Spark's functions."""
