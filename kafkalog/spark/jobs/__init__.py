"""What jobs share."""
