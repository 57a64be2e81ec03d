"""What programs other than brokers keep in topics: Kafka Connect, Streams, MirrorMaker."""
