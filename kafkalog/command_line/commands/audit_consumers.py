"""`kafkalog audit-consumers`: what old consumers have in ZooKeeper, and what they should have."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_words,
)
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.zookeeper.migration_options import audited_log_dir_option
from kafkalog.words import time_text

_OWNERSHIP, _FINDINGS, _HISTORY = "partition_ownership", "consumer_findings", "ownership_history"
_TABLES = {"finding": _FINDINGS, "partition": _OWNERSHIP, "claim": _HISTORY}
_TEXT_COLUMNS = {
    _FINDINGS: ("finding", "group_id", "topic", "partition", "detail"),
    _OWNERSHIP: (
        *("group_id", "topic", "partition", "owner", "assigned", "committed_offset"),
        *("log_start_offset", "high_watermark", "findings"),
    ),
    _HISTORY: (
        *("group_id", "topic", "partition", "owner", "claimed_ms", "claim_cause"),
        *("released_ms", "release", "release_cause"),
    ),
}

_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(("claimed_ms", "released_ms"), time_text)

_EPILOG = f"""\
{shared.ZOOKEEPER_PATHS_MEANING}
The command changes and deletes nothing. Findings are owners that are not those which consumers
compute, sessions that have ended, offsets that no log has, deletions of topics under way, and ids
of brokers and clusters that differ. See docs/zookeeper.md.

\b
Examples:
  kafkalog audit-consumers /var/lib/zookeeper
  kafkalog audit-consumers /var/lib/zookeeper --log-dir /var/lib/kafka/data --by partition
"""


@click.command("audit-consumers", epilog=_EPILOG)
@shared.paths_argument
@audited_log_dir_option
@answer_options(tuple(_TABLES), "A row per finding, per partition of a group, or per claim.")
def audit_consumers(
    paths: Sequence[str],
    log_dirs: tuple[str, ...],
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
) -> ExitCode:
    """Compare who owns partitions in ZooKeeper with what old consumers are assigned."""
    from kafkalog.questions.zookeeper.audit import AuditSettings, audit, compared_log_dirs
    from kafkalog.storage.files.files import matching_paths
    from kafkalog.zookeeper.data_dir import find_data_dirs

    table, table_format = _TABLES[by], output.table_format
    columns = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    data_dirs = find_data_dirs(paths)
    place = output.tables(
        _TEXT_COLUMNS,
        [each.path for each in data_dirs],
        [found for path in paths for found in matching_paths(path)],
    )
    compared = compared_log_dirs(log_dirs, output.output_dir)
    settings = AuditSettings(data_dirs, compared, time.time_ns() // 1_000_000)
    found = audit(settings)
    write_answer(columns, found.tables[table], table_format, show=show, texts=_TEXTS)
    write_words(found.words(), table_format)
    save_tables(place, found.tables)
    return exit_code(has_findings=found.has_findings, fails=fail_on_findings)
