"""Who takes part in a measurement, and that all do the same work."""
