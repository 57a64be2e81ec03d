"""Questions about consumer groups: their lag, their commits, and why they wait."""
