"""Consumer groups and internal topics as columns."""
