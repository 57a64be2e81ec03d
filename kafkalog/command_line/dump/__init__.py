"""What `kafkalog dump` reads, in which order, and where it writes."""
