"""Answers computed from batch tables."""
