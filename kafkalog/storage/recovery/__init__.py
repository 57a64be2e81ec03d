"""What a broker does to a log at its start."""
