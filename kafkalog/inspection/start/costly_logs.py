"""Logs that a broker opens without an error, and that cost records or groups: what to do before the
start. Rules: docs/format.md F941, F1000 and F1199."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Any

from kafkalog.inspection.groups.coordinator_loading import Consequence, CoordinatorLoad
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.names import LOG_STARTS, TRANSACTION_STATE
from kafkalog.words import counted

_COMMITS = "kafka-consumer-groups.sh --reset-offsets --from-file"
_COLUMNS = "group,topic,partition,current_offset"


def starts_beyond_ends(rows: Iterable[Mapping[str, Any]]) -> Iterator[Reason]:
    """Yield the logs of view `recovery_plan` that end before the start that the checkpoint records.
    Rule: docs/format.md F1199."""
    for row in rows:
        start, gone = row["log_start_offset"], row["deleted_segments"]
        is_empty = start and start == row["log_end_offset"] and row["cut_file"] is None
        if not (is_empty and gone and row["lost_bytes"] and row["start_error"] is None):
            continue
        log_dir, name = os.path.split(row["directory"])
        path = os.path.join(log_dir, LOG_STARTS)
        entry = f"{row['topic']} {row['partition']} {start}"
        detail = (
            f"{name} begins at offset {start} by this file, and its log ends before that: the "
            f"broker deletes its {counted(len(gone), 'segment')}"
        )
        pattern = entry.replace(".", r"\.")
        edit = f"s/^{pattern}$/{row['topic']} {row['partition']} {min(gone)}/"
        line = (
            f"sed -i {quote(edit)} {quote(path)}  # keeps the records that are here; if the number "
            "is right, they had been deleted, and later ones are missing: look for a newer copy"
        )
        yield Reason(path, detail, line, "", False)


def padded_time_indexes(rows: Iterable[Mapping[str, Any]]) -> Iterator[Reason]:
    """Yield the logs of view `recovery_plan` that retention deletes because their time indexes end
    with zeros: without its indexes a broker makes those of a segment again. Rule: docs/format.md
    F941."""
    for row in rows:
        soon = row["deleted_soon"]
        if soon is None or soon["is_expected"] or not row["padded_time_indexes"]:
            continue
        path = row["directory"].rstrip("/")
        log_dir, name = os.path.split(path)
        detail = (
            f"retention deletes {counted(soon['records'], 'record')} of {name} within minutes: "
            f"{soon['reason']}"
        )
        target = quote(f"{log_dir}.aside.{name}")
        line = f"mkdir -p {target} && mv {quote(path)}/*.index {quote(path)}/*.timeindex {target}"
        yield Reason(path, detail, line, "", False)


def stopped_coordinators(loads: Iterable[CoordinatorLoad]) -> Iterator[Reason]:
    """Yield the partitions that coordinators do not load, and how to go on without them: a broker
    has no way to pass over the record. Rule: docs/format.md F1000."""
    for load in loads:
        if load.loads:
            continue
        log_dir, name = os.path.split(load.path.rstrip("/"))
        place = f"{name} does not load at offset {load.offset}: {load.reason}"
        away = move_away(load.path.rstrip("/"), log_dir)
        if load.topic == TRANSACTION_STATE:
            cost = "open transactions and producer epochs of it are lost then"
        else:
            cost = f"its groups begin without commits then: set them with {_COMMITS}"
            saved = f"kafkalog groups {quote(log_dir)} --format csv --columns {_COLUMNS}"
            away = f"{saved} > commits.csv; {away}"
        words = "a broker cannot pass over the record"
        if load.consequence is Consequence.PARTIAL:
            words = "a broker knows only what is before the record"
        line = (
            f"start a version that reads it, if the reason names one; without one: {away}  # on "
            f"each broker that has it; {cost}"
        )
        yield Reason(load.path, f"{place}; {words}", line, "", False)
