"""Records of a person in log files: what they are known by, where they are, files without them."""
