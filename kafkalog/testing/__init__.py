"""Tiny log directories for the tests of kafkalog's users: docs/testing.md.

It needs no Spark, and writes real segments with indexes, producer snapshots and checkpoints, as a
broker leaves them after a clean stop.
"""

from __future__ import annotations

from kafkalog.testing.log_directory import LogDirectory
from kafkalog.testing.made_records import Header, ProducerRecord
from kafkalog.testing.producers import TransactionalProducer
from kafkalog.testing.topics import Topic

__all__ = ["Header", "LogDirectory", "ProducerRecord", "Topic", "TransactionalProducer"]
