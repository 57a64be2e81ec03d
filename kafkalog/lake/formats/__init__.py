"""Which table a command writes or maintains, by its format."""
