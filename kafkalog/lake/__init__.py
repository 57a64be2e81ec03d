"""Tables of records: tasks write their Parquet files, the driver commits them."""
