"""Questions about the disks of brokers."""
