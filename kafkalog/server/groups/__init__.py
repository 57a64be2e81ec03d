"""Consumer groups: those on disk, and their members of now, who live in memory only."""
