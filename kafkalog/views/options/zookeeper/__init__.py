"""Options about data directories of ZooKeeper, and about moving away from it."""
