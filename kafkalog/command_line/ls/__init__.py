"""What `kafkalog ls` reads and prints."""
