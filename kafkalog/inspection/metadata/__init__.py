"""Copies of `__cluster_metadata`: the cluster as of a moment, and what changed."""
