"""Where logs begin and end, by offset and by time."""
