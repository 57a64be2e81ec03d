"""Tiny log directories for the tests of those who use kafkalog: docs/testing.md.

Nothing here needs Spark. What is written are real segments with indexes, snapshots of producers and
checkpoints, as a broker that was stopped leaves them.
"""

from __future__ import annotations

from kafkalog.testing.log_directory import LogDirectory
from kafkalog.testing.made_records import Header, ProducerRecord
from kafkalog.testing.producers import TransactionalProducer
from kafkalog.testing.topics import Topic

__all__ = ["Header", "LogDirectory", "ProducerRecord", "Topic", "TransactionalProducer"]
