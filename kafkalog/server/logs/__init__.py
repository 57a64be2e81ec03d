"""What log directories hold, as a server hands it out."""
