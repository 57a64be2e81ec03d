"""Groups, commits and lag as DataFrames."""
