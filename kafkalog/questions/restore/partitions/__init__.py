"""One partition of a restore: where its log begins and ends, and its files."""
