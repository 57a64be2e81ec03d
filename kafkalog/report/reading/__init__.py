"""From log directories to the rows of a report: each part asks its views and keeps little."""
