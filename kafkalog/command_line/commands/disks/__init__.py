"""Commands about the disks of brokers."""
