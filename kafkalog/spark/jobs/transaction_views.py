"""What is read of log directories for a report on their transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from kafkalog.storage.log_dir.absent_coordinators import clusters_without_all_coordinators
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import TRANSACTION_STATE


class TransactionViews(NamedTuple):
    """Views `transactions`, `stable_offsets` and `transaction_states`: the last one is None where
    the input does not have the topic that coordinators keep, and `incomplete` are the clusters of
    which it does not have all of its partitions."""

    transactions: DataFrame
    stable_offsets: DataFrame
    states: DataFrame | None
    incomplete: frozenset[str | None]


def transaction_views(
    spark: SparkSession, log_dirs: Sequence[str], *, mode: str, at_ms: int
) -> TransactionViews:
    """The views of all partitions under the log directories, internal topics included."""

    def view(name: str) -> DataFrame:
        reader = spark.read.format("kafkalog").option("view", name).option("subscribe", "*")
        return reader.option("mode", mode).option("nowMs", at_ms).load(list(log_dirs))

    found = find_partitions(log_dirs, strict=False)
    has_states = any(log.topic == TRANSACTION_STATE for log in found)
    states = view("transaction_states") if has_states else None
    incomplete = clusters_without_all_coordinators(found)
    return TransactionViews(view("transactions"), view("stable_offsets"), states, incomplete)
