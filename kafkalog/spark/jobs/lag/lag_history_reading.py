"""Lag and status of groups at many times: a task reads each log, and another moves windows of
commits over the events of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.commit_events import EventKind
from kafkalog.coordination.groups.lag_status import LagSettings
from kafkalog.inspection.lag.history_rows import EVENT_KEY, STATUS_COLUMNS, StatusRows
from kafkalog.spark.jobs.lag.lag_reading import with_lag
from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings


def with_statuses(events: DataFrame, places: DataFrame, settings: LagHistorySettings) -> DataFrame:
    """Return events of `analysis.lag.lag_history.lag_events` with accounts of their lag
    (`with_lag`) and statuses (STATUS_COLUMNS). Groups that the settings do not select are left
    out at the end: their commits also show how far a log had grown."""
    kept = events.persist()
    is_deletion = F.col("kind") == int(EventKind.DELETION)
    questions = kept.where(~is_deletion)
    account = partial(
        with_lag, places=places, read_committed=settings.read_committed, now_ms=settings.now_ms
    )
    now = account(questions.where("is_now"))
    then = account(questions.where("NOT is_now"), at="question_ms")
    deletions = kept.where(is_deletion)
    answered = then.unionByName(now).unionByName(deletions, allowMissingColumns=True)
    in_order = (
        settings.groups.matching(answered, "group_id")
        .repartition(*EVENT_KEY)
        .sortWithinPartitions(*EVENT_KEY, "effective_offset", "moment_ms", "kind")
    )
    schema = StructType(list(in_order.schema.fields))
    for name, data_type in STATUS_COLUMNS.items():
        schema.add(name, data_type)
    return in_order.mapInArrow(_judging(settings.burrow, settings.lag), schema)


def _judging(
    burrow: BurrowSettings, lag: LagSettings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = StatusRows(burrow, lag)
        for batch in batches:
            if batch.num_rows:
                yield rows.judged(batch)

    return judge
