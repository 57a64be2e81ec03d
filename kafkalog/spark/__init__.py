"""Thin adapters to Spark: options, source, session, tables. No format knowledge."""
