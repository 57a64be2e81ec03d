"""The encoding of single values: variable-length integers, checksums, compression."""

BytesLike = bytes | bytearray | memoryview
