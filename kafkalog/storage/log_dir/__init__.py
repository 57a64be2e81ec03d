"""Log directories: partitions, segments, checkpoints, other entries."""
