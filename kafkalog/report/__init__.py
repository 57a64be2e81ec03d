"""A cluster's log directories on one HTML page."""
