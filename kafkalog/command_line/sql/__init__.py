"""What `kafkalog sql` writes, and its prompt."""
