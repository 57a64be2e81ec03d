"""Kernels: how they are compiled, and where machine code is kept."""
