"""Rows of ZooKeeper's files."""
