"""What Kafka and its old consumers keep in ZooKeeper."""
