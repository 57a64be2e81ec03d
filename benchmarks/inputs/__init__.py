"""What is measured with: segments, topics and log directories."""
