"""What Kafka's internal topics hold: one interpreter over schema data. Pure Python, no files."""
