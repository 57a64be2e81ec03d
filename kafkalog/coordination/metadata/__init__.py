"""Rules of the controllers: what records of `__cluster_metadata` make of a cluster."""
