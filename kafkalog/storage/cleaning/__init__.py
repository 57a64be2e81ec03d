"""Retention and compaction."""
