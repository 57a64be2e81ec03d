"""What `kafkalog replicas` prints."""
