"""Questions about what is inside topics."""
