"""Tables that are directories of Parquet files."""
