"""Where a stream begins, and what one of its micro-batches reads. Rules: docs/ingest.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    EARLIEST,
    LATEST,
    OffsetRequest,
    SpecificOffsets,
    offset_range,
    report_data_loss,
)
from kafkalog.views.options.offset_options import check_partitions
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.options.stream_options import StreamOptions
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.planning.planning import chosen_logs, time_lookup
from kafkalog.views.planning.stream_offsets import (
    PartitionEnd,
    StreamEnds,
    StreamOffsets,
    parsed_offsets,
    present_logs,
)

_OF_THE_STREAM = "the stream's offsets"


def starting_offsets(options: StreamOptions, ends: StreamEnds) -> StreamOffsets:
    """Return the first offset to read of each partition that is there now.

    Raises OptionError for a topic that was named and is not there, and as a batch read does.
    """
    # A name that is mistyped shows here; later, topics may come and go.
    chosen_logs(options.read, find_logs(options.read.paths, strict=False))
    found = ends.now()
    if options.starting is None:
        return {key: partition.end for key, partition in found.items()}
    request = replace(
        options.read.offsets, starting=options.starting, starting_option=options.starting_option
    )
    check_partitions(request, [each.replicas.best for each in found.values()])
    return {key: _starting_offset(key, each, request) for key, each in found.items()}


def _starting_offset(key: TopicPartition, found: PartitionEnd, request: OffsetRequest) -> int:
    if isinstance(request.starting, SpecificOffsets):
        requested = request.starting.offsets[key]
        if requested == LATEST:
            return found.end
        if requested > found.log_end:
            report_data_loss(
                f"{request.starting_option}: offset {requested} of {found.replicas.best.name} is "
                f"not in the log, which holds {found.start} up to {found.log_end}",
                fail=request.fail_on_data_loss,
            )
            return found.end
    lookup = time_lookup(found.replicas, request.time_rule)
    offsets = offset_range(found.replicas.best, request, lookup, found.end)
    # An empty range stands for the latest offset, that of a time that no record has reached.
    return found.end if offsets.is_empty else offsets.start


def micro_batch(
    options: ReadOptions, start: Mapping[str, Any], end: Mapping[str, Any]
) -> tuple[ReadOptions, list[PartitionLog]] | None:
    """Return the options of a batch read of the offsets between, and the logs; None if there are
    none.

    A partition that has no start is new, and read from its first offset. Raises DataLossError, or
    logs, where one was deleted.
    """
    starts, ends = parsed_offsets(start), parsed_offsets(end)
    if all(starts.get(key, 0) >= offset for key, offset in ends.items()):
        return None
    logs = present_logs(options)
    present = {log.topic_partition for log in logs}
    requested = {key: starts.get(key, EARLIEST) for key in ends if starts.get(key, 0) < ends[key]}
    for topic, partition in sorted(requested.keys() - present):
        report_data_loss(
            f"partition {topic}-{partition} no longer exists; its offsets up to "
            f"{ends[topic, partition]} were to be read",
            fail=options.offsets.fail_on_data_loss,
        )
    kept = requested.keys() & present
    if not kept:
        return None
    request = OffsetRequest(
        starting=SpecificOffsets({key: requested[key] for key in kept}),
        ending=SpecificOffsets({key: ends[key] for key in kept}),
        starting_option=_OF_THE_STREAM,
        ending_option=_OF_THE_STREAM,
        fail_on_data_loss=options.offsets.fail_on_data_loss,
        # Where the micro-batch ends is decided, whatever the high watermark is by now.
        end_rule=EndRule.LOG_END,
    )
    read = replace(options, topics=TopicChoice(assign=frozenset(kept)), offsets=request)
    return read, logs
