"""What group coordinators make of what they have written: rules as pure functions."""
