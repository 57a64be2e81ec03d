"""The part of a report about consumer groups."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.lag.group_generations import group_generations
from kafkalog.analysis.lag.lag_history import group_totals, lag_events, lag_history, newest_statuses
from kafkalog.analysis.lag.lag_series import commit_span, lag_series, rebalances
from kafkalog.coordination.groups.commit_events import HistoryMoments
from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
from kafkalog.report.contents import GroupsSection
from kafkalog.report.time_grid import grid_over
from kafkalog.spark.jobs.lag.lag_history_reading import with_statuses
from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings
from kafkalog.spark.jobs.lag.lag_views import lag_views
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS

# What a page has room for.
LISTED_STATUSES = 20
PLOTTED = 6
_REBALANCES = 40


def history_end(last_commit_ms: int, latest_ms: int, at_ms: int) -> int:
    """Return when the history of groups ends: the end of a copy that was made long ago is not now.
    Rule: docs/report.md F604."""
    return max(last_commit_ms, min(latest_ms, at_ms))


def read_groups(
    spark: SparkSession, log_dirs: Sequence[str], mode: str, latest_ms: int, at_ms: int
) -> GroupsSection | None:
    """Return the groups that commit to Kafka; None where the input has none. `latest_ms` is a time
    that hardly any batch is later than, `at_ms` the time of the report."""
    if all(log.topic != CONSUMER_OFFSETS for log in find_partitions(log_dirs, strict=False)):
        return None
    views = lag_views(spark, log_dirs, mode=mode)
    commits = views.commits.persist()
    (span,) = commit_span(commits).collect()
    if not span.commits:
        return None
    until_ms = history_end(span.last_ms, latest_ms, at_ms)
    grid = grid_over(span.first_ms, span.first_ms, until_ms, until_ms)
    moments = HistoryMoments(0, until_ms, ends_now=True, every_ms=grid.every_ms)
    settings = LagHistorySettings(at_ms, moments)
    events = lag_events(commits, moments, settings.burrow)
    judged = with_statuses(events, views.places, settings)
    history = lag_history(judged, moments, settings.burrow).persist()
    statuses = newest_statuses(history).persist()
    # As numbers: Python would turn moments into the time zone of this machine.
    times = {name: F.unix_millis(name) for name in ("behind_since", "last_commit")}
    listed = statuses.limit(LISTED_STATUSES).withColumns(times).collect()
    (totals,) = group_totals(statuses).collect()
    plotted = [row.group_id for row in listed[:PLOTTED]]
    generations = group_generations(views.group_metadata.persist())
    return GroupsSection(
        totals,
        listed,
        lag_series(history, plotted).collect(),
        rebalances(generations, plotted, _REBALANCES).collect(),
        reach_words(commit_reaches(views.complete_from.collect()), None),
    )
