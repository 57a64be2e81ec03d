"""What is measured inside a Spark session."""
