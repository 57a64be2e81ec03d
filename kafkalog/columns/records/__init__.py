"""Records of batches as Arrow columns."""
