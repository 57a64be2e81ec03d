"""The options of the data sources."""
