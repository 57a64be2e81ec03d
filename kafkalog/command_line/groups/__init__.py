"""What `kafkalog groups` reads and prints."""
