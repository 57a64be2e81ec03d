"""Where a log begins and ends, and which segments a read needs."""
