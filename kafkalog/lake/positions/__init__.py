"""Positions in topics that engines keep beside their tables and queries."""
