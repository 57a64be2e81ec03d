"""Questions about positions in logs: those of groups over time and after a start, and others."""
