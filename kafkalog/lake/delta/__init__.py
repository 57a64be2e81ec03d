"""Tables in Delta's format: what their log says, and commits without Java."""
