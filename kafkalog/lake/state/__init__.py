"""The table of state: tasks find the offsets that survive, and write their records to files."""
