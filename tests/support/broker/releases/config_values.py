"""Values of configs, and which of them the parser of a release refuses."""

# Release, whose config, name and value; whether the parser refuses the value, as
# tests/broker/cluster/test_release_tables.py finds.
VALUES = [
    ("4.4", "topic", "segment.bytes", "300", True),
    ("4.1", "topic", "segment.bytes", "1048575", True),
    ("4.1", "topic", "segment.bytes", " 1048576 ", False),
    ("4.0", "topic", "segment.bytes", "300", False),
    ("4.0", "broker", "log.segment.bytes", "300", True),
    ("3.9", "broker", "log.segment.bytes", "300", False),
    ("3.9", "topic", "segment.bytes", "13", True),
    ("4.4", "topic", "segment.bytes", "2147483648", True),
    ("4.4", "topic", "retention.ms", "2147483648", False),
    ("4.4", "topic", "retention.ms", "-2", True),
    ("4.4", "topic", "retention.ms", "1e3", True),
    ("4.4", "topic", "cleanup.policy", "compact, delete", False),
    ("4.4", "topic", "cleanup.policy", "compact,erase", True),
    ("4.4", "topic", "compression.type", "gzip", False),
    ("4.4", "topic", "compression.type", "brotli", True),
    ("4.4", "topic", "compression.gzip.level", "-1", False),
    ("4.4", "topic", "compression.gzip.level", "0", True),
    ("4.4", "topic", "compression.gzip.level", "9", False),
    ("4.4", "topic", "min.cleanable.dirty.ratio", "0.5", False),
    ("4.4", "topic", "min.cleanable.dirty.ratio", "1.1", True),
    ("4.4", "topic", "min.cleanable.dirty.ratio", "half", True),
    ("4.4", "topic", "preallocate", "TRUE", False),
    ("4.4", "topic", "preallocate", "yes", True),
    ("4.4", "topic", "message.timestamp.type", "createtime", True),
    ("4.4", "broker", "group.consumer.migration.policy", "disabled", False),
    ("4.4", "broker", "log.cleaner.threads", "abc", True),
    ("4.4", "broker", "node.id", "-1", True),
    ("3.9", "broker", "node.id", "-1", False),
]
