"""Taking turns, processes of their own, and the tables of a report."""
