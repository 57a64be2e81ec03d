"""Which cluster do copied disks make, as of one moment? Rules: docs/restore.md."""
