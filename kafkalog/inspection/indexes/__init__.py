"""Checks of the files beside a log."""
