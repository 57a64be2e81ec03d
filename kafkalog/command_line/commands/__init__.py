"""The commands of `kafkalog`, a file each."""
