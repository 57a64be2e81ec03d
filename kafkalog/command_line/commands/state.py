"""`kafkalog state`: the latest committed value of each key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_output_options,
    exit_code,
    name_tables,
    shown_rows_option,
    write_answer,
    write_words,
)
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.decoding.decoding_requests import (
    DecodingOptions,
    decoding_options,
    decoding_requests,
)
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.options import Mode
from kafkalog.views.options.state_options import StateRequest, state_options
from kafkalog.words import time_text

_STATE, _PARTITIONS, _DECODED = "state", "state_partitions", "state_decoded"
_TEXT_COLUMNS = ("topic", "partition", "key", "value", "offset", "timestamp_ms")
_TEXTS: dict[str, Callable[[Any], str]] = {"timestamp_ms": time_text}

_EPILOG = f"""\
{shared.PATHS_MEANING}
A row is a key with its latest committed value; keys whose latest record is a delete are left out,
unless --keep-tombstones is given. Findings are partitions whose cleaner may have removed values of
the requested time, and records with a time in the future; the exit code is 0 all the same, unless
--fail-on-findings is given. With --key-format or --value-format keys
and values are decoded, in table state_decoded too. Job reconstruct-state reads only what is new
since its last run.

\b
Examples:
  kafkalog state /var/lib/kafka/data --topic customers
  kafkalog state /var/lib/kafka/data --topic customers --as-of 2026-11-21T12:00:00Z
  kafkalog state /var/lib/kafka/data --topic customers --output-dir /tmp/state
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@state_options
@decoding_options
@shown_rows_option("rows")
@shared.mode_option(Mode.FAILFAST)
@shared.fail_on_findings_option(default=False)
@answer_output_options
@shared.processes_option
def state(
    paths: Sequence[str],
    request: StateRequest,
    decoding: DecodingOptions,
    show: int,
    mode: str,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show or write the latest committed value of each key, now or at a past time."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.lake.decoding.local_decoding import decoded_rows, format_choice
    from kafkalog.lake.formats.answer_tables import with_times_as_text
    from kafkalog.questions.state import State, state_doubts
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.views.engine import LocalViews, RowsInMemory
    from kafkalog.views.parallel import processes_for
    from kafkalog.views.planning.state_sources import state_sources

    if output.answer_format == "delta":
        allowed = "parquet, json or csv: `kafkalog job reconstruct-state` commits Delta tables"
        raise OptionError("--format", "delta", f"{allowed} of state, with Java")
    table_format = output.table_format
    requests = decoding_requests(decoding, paths, mode)
    choices = [(each, format_choice(each)) for each in requests]
    added = [name for each in requests for name in each.added]
    shown_as = {each.column: each.added[0] for each in requests}
    text_columns = [shown_as.get(each, each) for each in _TEXT_COLUMNS]
    columns = answer_columns(_STATE, text_columns, table_format, added)
    logs = find_logs(paths, strict=mode == Mode.FAILFAST.value)
    tables = (_STATE, _PARTITIONS, *((_DECODED,) if requests else ()))
    place = output.tables_of_logs(tables, paths, logs)
    inputs = [entry.path for path in paths for entry in input_entries(path)]
    sources = state_sources(request.options(inputs, mode, now_ms=time.time_ns() // 1_000_000))
    size = bytes_in([log for source in sources for log in source.logs])
    views = LocalViews(inputs, logs, processes_for(size, processes))
    found = State(views, request, mode, sources)
    rows = found.rows().table if requests or place is None else None
    decoded, schema = (rows, None) if rows is None else decoded_rows(_STATE, rows, choices)
    if place is None:
        shown = RowsInMemory(with_times_as_text(decoded))
        texts = {**_TEXTS, **dict.fromkeys(added, _json_text)}
        write_answer(columns, shown, table_format, show=show, texts=texts)
    else:
        written = [place.replace(_STATE, found if rows is None else rows)]
        written.append(place.replace(_PARTITIONS, found.partitions.table))
        if requests:
            written.append(place.replace(_DECODED, decoded, schema))
        name_tables(written)
    write_words(found.words(), table_format)
    return exit_code(has_findings=bool(state_doubts(sources)), fails=fail_on_findings)


def _json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
