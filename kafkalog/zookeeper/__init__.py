"""ZooKeeper's own files: snapshots and transaction logs, and the tree that they replay to."""
