"""What Kafka's structures look like: bytes in, values out, and back.

Plain and slow; written next to the rules it cites (docs/format.md). No I/O.
"""
