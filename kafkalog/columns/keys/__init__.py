"""Keys of records as hashes of 128 bits, and the highest offset of each."""
