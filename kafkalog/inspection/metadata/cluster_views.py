"""Views about a KRaft cluster: `cluster_topics`, `cluster_partitions`, `cluster_configs`,
`cluster_acls` and `metadata_changes`, with their columns in schemas/tables. Their rows are those of
`kafkalog metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from kafkalog.columns.table_rows import TableRow
from kafkalog.coordination.metadata.cluster_rows import change_rows, cluster_rows
from kafkalog.coordination.metadata.image import START, Moment
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.change_causes import cause_row, with_causes
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at
from kafkalog.storage.partition_log import PartitionLog

OnDamage = Callable[[CorruptDataError], None]


def cluster_view_rows(
    view: str,
    logs: Sequence[PartitionLog],
    until: Moment,
    on_damage: OnDamage,
    *,
    show_secrets: bool,
) -> Iterator[TableRow]:
    """Yield the rows of a view, from the best of several copies. `on_damage` is called with what
    keeps records or snapshots from being read. Raises LogDirError as `image_at` does."""
    copy = best_copy([MetadataCopy(log) for log in logs])
    log = copy.log.log
    constants = {"cluster_id": log.log_dir.cluster_id, "input_path": log.input_path}
    for row in VIEWS[view](copy, until, on_damage, show_secrets):
        yield {**constants, **row}


def _state(
    kind: str, copy: MetadataCopy, until: Moment, on_damage: OnDamage, show_secrets: bool
) -> Iterator[TableRow]:
    replay = image_at(copy.log, until)
    _report(replay, on_damage)
    place = {"as_of_offset": replay.next_offset, "as_of_ms": replay.last_ms}
    for row in cluster_rows(kind, replay.image, show_secrets=show_secrets):
        yield {**place, **row}


def _changes(
    copy: MetadataCopy, until: Moment, on_damage: OnDamage, show_secrets: bool
) -> Iterator[TableRow]:
    replay = MetadataReplay(copy.log, START, until)
    for each, cause in with_causes(replay.changes()):
        place = {"offset": each.offset, "timestamp_ms": each.timestamp_ms, **cause_row(cause)}
        for row in change_rows(each.change, show_secrets=show_secrets):
            values = {"old": _json(row.old), "new": _json(row.new)}
            yield {**place, "record_name": each.record_name, **row._asdict(), **values}
    _report(replay, on_damage)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _report(replay: MetadataReplay, on_damage: OnDamage) -> None:
    for damage in (*replay.unusable, *replay.damages):
        on_damage(damage)


_Rows = Callable[[MetadataCopy, Moment, OnDamage, bool], Iterator[TableRow]]
VIEWS: Mapping[str, _Rows] = {
    "cluster_topics": partial(_state, "topic"),
    "cluster_partitions": partial(_state, "partition"),
    "cluster_configs": partial(_state, "config"),
    "cluster_acls": partial(_state, "acl"),
    "metadata_changes": _changes,
}
