"""Files, local and remote: listed, opened, read, written."""
