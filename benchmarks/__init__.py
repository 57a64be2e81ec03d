"""How fast the fast reader is: against a floor, against other readers, and codec by codec.

`python -m benchmarks.decode` and `python -m benchmarks.codecs`, from the project's directory.
"""
