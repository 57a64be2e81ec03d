"""Many messages of internal topics, decoded together."""
