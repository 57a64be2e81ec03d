"""Lag of committed offsets, now and over time."""
