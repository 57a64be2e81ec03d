"""Payloads decoded in plain Python: what a search needs, and where registries are asked."""
