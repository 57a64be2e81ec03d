"""A segment as batch tables: framing, checksums, plausible offsets, damaged ranges."""
