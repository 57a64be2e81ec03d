"""What the ZooKeeper jobs share."""
