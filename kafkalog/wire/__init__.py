"""How one value lies in bytes: variable-length integers, checksums, compression."""

BytesLike = bytes | bytearray | memoryview
