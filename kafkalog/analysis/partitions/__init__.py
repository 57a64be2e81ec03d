"""Reports about partitions as DataFrames."""
