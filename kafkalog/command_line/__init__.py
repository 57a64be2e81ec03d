"""The command `kafkalog`: Kafka's log files on one machine, without Spark and without a JVM."""
