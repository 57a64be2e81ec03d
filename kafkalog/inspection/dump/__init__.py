"""The text that `kafkalog dump` prints, and the search of `kafkalog find`."""
