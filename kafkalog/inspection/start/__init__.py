"""How a broker loads the log directories of a node: what ends it, and what it sets aside."""
