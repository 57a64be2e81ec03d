"""Commands about the records inside topics."""
