"""Keys and values as columns of tables: what is requested, which schema reads what, and the readers
that need no Spark."""
