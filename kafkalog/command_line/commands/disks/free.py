"""`kafkalog free`: what may be deleted by hand to free space on a disk, least harmful first."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import write_answer, write_words
from kafkalog.command_line.inputs import views_with_progress
from kafkalog.command_line.terminal import print_text, printed_columns, table_format_option
from kafkalog.errors import LogDirError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.parameter_types import GivenPath, Size
from kafkalog.words import size_text, time_text

_COLUMNS = (
    *("harm", "topic", "partition", "bytes", "files", "offsets", "start_offset_after"),
    *("newest_timestamp_ms", "assumed_policy", "groups", "path", "commands"),
)
_TEXT_COLUMNS = _COLUMNS[:9]
_TEXTS: dict[str, Callable[[Any], str]] = {"bytes": size_text, "newest_timestamp_ms": time_text}

_EPILOG = """\
\b
LOG_DIR is a broker's log directory on a disk of this machine; give all that are on the full disk.
The command deletes nothing: it prints what to type, once the broker is stopped.

\b
HARM, the order of the steps:
  marked          marked for deletion: the broker removes it anyway
  past_retention  the broker removes it within minutes
  in_tier         tiered storage has it, by __remote_log_metadata in LOG_DIR
  replicated      a replica in --replicas has all of it; the broker copies it again
  oldest          the oldest segments of topics that are not compacted: these records are lost

OFFSETS is how many offsets the log loses, START-OFFSET-AFTER where it then begins,
ASSUMED-POLICY the cleanup.policy that no file says. JSON also has the groups that have not read
what is lost, by the commits in LOG_DIR. The exit code is 1 if all steps together do not free what
is needed.

\b
Examples:
  kafkalog free /var/lib/kafka/data --need 200GiB
  kafkalog free /var/lib/kafka/data --need 200GiB --server-properties server.properties
  kafkalog free /var/lib/kafka/data --replicas /mnt/broker2/kafka-logs --need 10GiB
  kafkalog free /var/lib/kafka/data --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--need", metavar="SIZE", type=Size(), help="How much is to be freed, such as 200GiB."
)
@click.option(
    "--replicas",
    metavar="LOG_DIR",
    type=GivenPath(),
    multiple=True,
    help="A log directory of another broker, whose replicas count; repeatable.",
)
@shared.config_options
@shared.as_of_option("Judge retention as of this time instead of now")
@table_format_option
@shared.processes_option
def free(
    paths: Sequence[str],
    need: int | None,
    replicas: Sequence[str],
    configs: ConfigSources,
    as_of: int | None,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Show what may be deleted to free space on a disk, least harmful first, and how."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.questions.disks.free import FreeRequest
    from kafkalog.questions.disks.free import free as answer
    from kafkalog.storage.files.uris import is_remote

    columns = printed_columns(_COLUMNS, table_format, _TEXT_COLUMNS)
    if remote := [path for path in paths if is_remote(path)]:
        raise LogDirError(f"{remote[0]}: not a directory on a disk of this machine")
    config = configs.options()
    found = find_logs(paths, strict=False)
    others = find_logs(replicas, strict=False) if replicas else []
    at_ms = time.time_ns() // 1_000_000 if as_of is None else as_of
    with views_with_progress(paths, found, processes) as views:
        plan = answer(views, FreeRequest(need, at_ms, config, others))
    rows = [step.row() for step in plan.steps]
    write_answer(columns, rows, table_format, show=len(rows), texts=_TEXTS)
    if table_format == "text":
        for step in plan.steps:
            for command in step.commands:
                print_text(command)
    write_words([*_disk_lines({log.log_dir.path for log in found}), *plan.words()], table_format)
    return ExitCode.DONE if plan.is_enough else ExitCode.FINDINGS


def _disk_lines(log_dirs: set[str]) -> list[str]:
    """Return how full the disks are."""
    lines = []
    for path in sorted(log_dirs):
        usage = shutil.disk_usage(path)
        lines.append(f"{path}: {size_text(usage.free)} of {size_text(usage.total)} are free now")
    return lines
