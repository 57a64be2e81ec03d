"""Logs written as a broker writes them."""
