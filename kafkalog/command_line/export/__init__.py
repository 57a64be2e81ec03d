"""`kafkalog export`: records to tables, by processes of this machine."""
