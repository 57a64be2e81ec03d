"""Questions about clusters that keep their state in ZooKeeper."""
