"""Tables of records that Spark's tasks write and the driver commits."""
