"""A whole report, from the views of log directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog import __version__
from kafkalog.columns.batches.kept_headers import headers_kept
from kafkalog.errors import OptionError
from kafkalog.questions.checks import Checks, asked_checks, checked, with_sound_files
from kafkalog.report.contents import Report, ReportMoment, as_rows
from kafkalog.report.reading.batch_reading import (
    BatchSums,
    TimeSpread,
    asked_sums,
    asked_times,
    batches_section,
)
from kafkalog.report.reading.cluster_reading import read_cluster, read_start
from kafkalog.report.reading.damage_reading import damage_section
from kafkalog.report.reading.group_reading import read_groups
from kafkalog.report.reading.key_reading import asked_keys, keys_section
from kafkalog.report.reading.retention_reading import read_retention
from kafkalog.report.reading.storage_reading import asked_segments, longest_copies, storage_section
from kafkalog.report.reading.transaction_reading import read_transactions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views

# What a page has room for; the rest is shown as sums. F605
TOPICS = 12
PARTITIONS = 24
RANGES = 5
HOLDERS = 20
# A phone's strip has two pixels for each.
CELLS = 160
# What is known of so many files goes to tasks.
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What a report is to be about: log directories, globs resolved, and the logs in them; the
    moment that it is of; options with the cluster's settings; whether keys are shown; which
    partitions only checkpoints know, in words."""

    log_dirs: Sequence[str]
    logs: Sequence[PartitionLog]
    at: ReportMoment
    config: Mapping[str, str] = field(default_factory=dict)
    shows_keys: bool = False
    absent: Sequence[str] = ()


def read_report(views: Views, request: ReportRequest) -> Report:
    """Return the rows of a report. Raises OptionError for log directories of several clusters, and
    what the views raise."""
    with headers_kept():
        return _report(views, request)


def _report(views: Views, request: ReportRequest) -> Report:
    at, at_ms = request.at, request.at.at_ms
    # Of a past time nothing later is drawn.
    until = {} if at.is_now else {"until_ms": at_ms}
    of_segments, times = views.rows(asked_segments(), asked_times(**until))
    segments = as_rows(of_segments)
    storage = storage_section(segments, TOPICS)
    clusters = sorted({row.cluster_id for row in storage.owners if row.cluster_id is not None})
    if len(clusters) > 1:
        raise OptionError("LOG_DIR", ", ".join(clusters), "log directories of one cluster")
    topics = [row.topic for row in storage.topics]
    spread, are_shown = TimeSpread(times), request.shows_keys
    sums = BatchSums(longest_copies(segments), topics, spread.grid, **until)
    # One walk over each segment has all three.
    found = views.rows(asked_checks(), asked_sums(sums), asked_keys(topics, are_shown=are_shown))
    of_checks, of_batches, of_keys = found
    batches, checks = batches_section(spread, of_batches), checked(views, of_checks, None)
    known = _known_logs(views.logs, checks)
    return Report(
        __version__,
        at,
        request.log_dirs,
        storage,
        batches,
        keys_section(of_keys, are_shown=are_shown),
        damage_section(checks, cells=CELLS, partitions=PARTITIONS, ranges=RANGES),
        read_groups(views, batches.latest_ms, at),
        read_transactions(views, topics, at, most=HOLDERS),
        read_retention(views, topics, known, at_ms=at_ms, config=request.config, most=TOPICS),
        read_cluster(views, request.logs, at.as_of_ms),
        read_start(views, known, at_ms=at_ms, config=request.config, most=HOLDERS),
        request.absent,
    )


def _known_logs(logs: Sequence[PartitionLog], found: Checks) -> list[PartitionLog] | None:
    """Return the logs with what is known of files in which nothing was found: they are not read
    again. None where these are too many to tell tasks."""
    is_small = sum(len(log.segments) for log in logs) <= _MOST_KNOWN
    return with_sound_files(logs, found.report) if is_small else None
