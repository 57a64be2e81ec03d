"""Commands about all nodes of a cluster together."""
