"""Views, and the tables of questions, as Arrow: `kafkalog.scan` and `kafkalog.sql`."""
