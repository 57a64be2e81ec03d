"""What `kafkalog metadata` and `kafkalog quorum` print."""
