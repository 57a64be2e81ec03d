"""What Kafka's structures look like: bytes in, values out, and back. The reference reader.

Complete, plain and slow; written next to the rules it cites (docs/format.md). No I/O.
"""
