"""A whole segment at a time into Arrow: numba kernels and the column builders. The fast reader."""
