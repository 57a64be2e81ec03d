"""Transactions in batch tables: markers, outcomes, the last stable offset."""
