"""Tables of records in Iceberg: catalogs, commits, and what old tables need."""
