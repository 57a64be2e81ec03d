"""What a read or a stream reads: segments, offsets, limits."""
