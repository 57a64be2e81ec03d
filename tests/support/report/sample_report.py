"""A report of made-up rows, as small as it can be, with any name in every place for one."""

from typing import Any

from kafkalog.report.contents import (
    BatchesSection,
    ClusterSection,
    DamageSection,
    GroupsSection,
    KeysSection,
    Report,
    ReportMoment,
    RetentionSection,
    Row,
    StorageSection,
    TransactionsSection,
)
from kafkalog.report.time_grid import TimeGrid

AT_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
GIB = 1 << 30
CELLS = 160


def sums(**keys: Any) -> Row:
    """A row of batch_totals: four batches of 1 KiB, compressed to half."""
    return Row(
        **keys, batches=4, records=40, bytes=4096, measured_bytes=4096, uncompressed_bytes=8192
    )


def damaged_log(name: str = "orders", **changes: Any) -> Row:
    """A partition of a GiB with one damaged batch in its middle."""
    mark = Row(cell=80, kind="checksum", severity="error", ranges=1)
    values: dict[str, Any] = {
        "cluster_id": "c",
        "broker_id": 1,
        "input_path": "/logs",
        "topic": name,
        "partition": 0,
        "bytes": GIB,
        "segments": 8,
        "faulty_bytes": 500,
        "trailing_bytes": 0,
        "ranges": 1,
        "errors": 1,
        "marks": [mark],
    }
    return Row(**(values | changes))


def damage(*logs: Row, ranges: tuple[Row, ...] = ()) -> DamageSection:
    totals = Row(
        partitions=len(logs),
        damaged_partitions=sum(row.errors > 0 for row in logs),
        bytes=sum(row.bytes for row in logs),
        ranges=sum(row.ranges for row in logs),
        errors=sum(row.errors for row in logs),
        faulty_bytes=sum(row.faulty_bytes for row in logs),
        trailing_bytes=0,
        missing=None,
    )
    return DamageSection(CELLS, logs, ranges, totals)


def series(group: str, *records: int | None) -> list[Row]:
    """What a group had left to read, an hour apart from AT_MS on."""
    return [
        Row(
            group_id=group,
            at_ms=AT_MS + number * HOUR_MS,
            readable_records=count,
            unknown_partitions=0,
            time_lag_ms=None,
        )
        for number, count in enumerate(records)
    ]


def status(group: str, value: str = "ERR", records: int = 12_000) -> Row:
    return Row(
        group_id=group,
        status=value,
        state="Empty",
        members=0,
        partitions=3,
        errors=1,
        readable_records=records,
        behind_since_ms=AT_MS + HOUR_MS,
        last_commit_ms=AT_MS,
        topic=group,
        partition=0,
        reason="no commit since",
    )


def groups(name: str = "billing") -> GroupsSection:
    generation = Row(
        group_id=name, at_ms=AT_MS, generation=7, members=2, state="Stable", partitions_moved=1
    )
    partition = Row(
        group_id=name,
        topic=name,
        partition=0,
        status="STOP",
        readable_records=12_000,
        committed_offset=7,
        resumes_at=None,
        records_again=None,
        next_timestamp_ms=AT_MS + HOUR_MS,
        commit_timestamp_ms=AT_MS,
        reason="no commit since",
    )
    member = Row(group_id=name, member_id=name, client_id=name, client_host=name, partitions=3)
    return GroupsSection(
        Row(groups=1, warned=1, waiting=0),
        [status(name)],
        series(name, 0, 6000, 12_000),
        [generation],
        "commits: all",
        [partition],
        1,
        [member],
        1,
    )


def transactions(name: str = "orders") -> TransactionsSection:
    holder = Row(
        cluster_id="c",
        broker_id=1,
        input_path="/logs",
        topic=name,
        partition=0,
        offsets_held_back=21,
        last_stable_offset=493,
        producer_id=9,
        transactional_id=name,
        outcome="open",
        reason="known",
        started_ms=AT_MS,
        first_timestamp_ms=AT_MS - HOUR_MS,
    )
    outcome = Row(shown_topic=name, outcome="committed", transactions=3, records=30)
    return TransactionsSection([outcome], [holder], 1)


def retention(name: str = "orders") -> RetentionSection:
    limits = {"cleanup_policy": "delete", "retention_ms": HOUR_MS, "retention_bytes": -1}
    limits["missing"] = []
    goes = Row(shown_topic=name, when="day", segments=2, bytes=4096, next_ms=AT_MS, **limits)
    return RetentionSection([goes], [Row(topic=name, partitions=1, timestamp_ms=AT_MS)])


def cluster(name: str = "orders") -> ClusterSection:
    topic = Row(
        topic=name,
        partitions=1,
        replication_factor=2,
        leaderless_partitions=0,
        under_replicated_partitions=1,
        configs=[(name, name)],
    )
    broker = Row(broker_id=1, replicas=1, leads=1, out_of_sync=0)
    config = Row(resource_type="client-metrics", resource_name=name, name=name, value=name)
    return ClusterSection(AT_MS, [topic], 1, [broker], [config], 1, 3)


def report(name: str = "orders") -> Report:
    """With this name for topics, groups, transactional ids, keys, files and paths."""
    topic = Row(
        topic=name,
        copies=1,
        partitions=1,
        segments=2,
        bytes=4096,
        first_timestamp_ms=AT_MS,
        max_timestamp_ms=AT_MS + HOUR_MS,
    )
    key = Row(
        shown_topic=name,
        records=40,
        keyed=40,
        tombstones=3,
        distinct_keys=2,
        top_keys=[Row(item=name, count=30), Row(item="other", count=10)],
    )
    finding = Row(
        cluster_id="c",
        broker_id=1,
        input_path="/logs",
        topic=name,
        partition=0,
        file=name,
        number=1,
        position=17,
        length=500,
        severity="error",
        detail=name,
        kind="checksum",
    )
    owner = Row(cluster_id=name, broker_id=1)
    totals = Row(topics=1, partitions=1, copies=1, segments=2, bytes=4096)
    grid = TimeGrid(AT_MS, HOUR_MS, 2)
    batches = BatchesSection(
        grid,
        AT_MS,
        [sums(shown_topic=name, stretch=0), sums(shown_topic=None, stretch=2)],
        [sums(shown_topic=name, compression="zstd")],
        [sums(compression="zstd", size_from=1024)],
        [sums(shown_topic=name)],
        Row(batches=0, records=0, bytes=0),
    )
    return Report(
        "1.0",
        ReportMoment(AT_MS, is_now=True),
        [name],
        StorageSection([owner], [topic], totals, Row(segments=2, bytes=2048)),
        batches,
        KeysSection([key], are_shown=True),
        damage(damaged_log(name), ranges=(finding,)),
        groups(name),
        transactions(name),
        retention(name),
        cluster(name),
    )


HOSTILE = '</script><script>alert(1)</script><img src="http://127.0.0.1" onerror=alert(2)>\u202e\0'
