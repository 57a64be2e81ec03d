"""What the lag jobs share."""
