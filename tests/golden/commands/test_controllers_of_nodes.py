"""What `kafkalog recover` says of the controllers that a node waits for, and of a log whose offsets
overflow, against what real nodes did. Rules: docs/format.md F1397, F1398, F1407 and F1409."""
