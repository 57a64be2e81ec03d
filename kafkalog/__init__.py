"""Kafka's log files as Spark DataFrames, read in bulk and without a broker."""
