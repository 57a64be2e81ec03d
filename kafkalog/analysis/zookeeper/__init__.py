"""What ZooKeeper held, as DataFrames."""
