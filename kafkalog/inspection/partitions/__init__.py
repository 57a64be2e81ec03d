"""Reports about one partition, a file for each view."""
