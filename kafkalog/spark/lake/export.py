"""`kafkalog.export`: topics into tables, from Python, on Spark or by processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from kafkalog.errors import OptionError, refuse_unknown_arguments
from kafkalog.lake.decoding.decoding_requests import (
    TableDecodingOptions,
    decoding_requests,
    suppression_of,
)
from kafkalog.lake.export_report import TopicRow, topic_rows, verdict
from kafkalog.lake.formats.dead_letters import refuse_dead_letters
from kafkalog.lake.formats.local_export import ExportSettings, local_exports
from kafkalog.lake.formats.targets import DELTA, FORMATS, requested_place
from kafkalog.lake.table_options import TableRequest
from kafkalog.log_lines import logger
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.read_directories import refuse_tables
from kafkalog.storage.partition_log import bytes_in
from kafkalog.storage.reading.offset_ranges import MAX_FUTURE_MS
from kafkalog.views.options.call_options import Paths, milliseconds, path_texts
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.option_names import options_named_as
from kafkalog.views.options.options import Isolation, Mode
from kafkalog.views.parallel import processes_for
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.views.planning.state_sources import found_sources
from kafkalog.views.progress import quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkalog.lake.decoding.decoding_requests import DecodingRequest

_logger = logger(__name__)
_TIMES = {"from_time": "from_ms", "until_time": "until_ms"}
# Options that are keywords of other names here, or that only the job has.
_NOT_HERE = {"topics", "from_ms", "until_ms", "offsets", "starting_offsets_out"}
_OF_TABLES, _OF_DECODING = (
    {each.name for each in fields(kind)} for kind in (TableRequest, TableDecodingOptions)
)
_NAMED = ("path", "output_dir", "format", "topics", "mode", "show_progress")
_DEFAULTS: dict[str, Any] = {
    "topics": (),
    "topic_pattern": None,
    "isolation_level": Isolation.READ_COMMITTED.value,
    "stop_at": "highWatermark",
    "from_ms": None,
    "until_ms": None,
    "offsets": (),
    "full_refresh": False,
    "starting_offsets_out": None,
    "max_future_ms": MAX_FUTURE_MS,
    "suppress": None,
}


def export(
    spark: SparkSession | None,
    path: Paths,
    output_dir: str | None = None,
    *,
    format: str = DELTA,  # noqa: A002
    topics: str | Sequence[str] | None = None,
    mode: str = Mode.FAILFAST.value,
    show_progress: bool = True,
    **options: Any,
) -> list[TopicRow]:
    """Write the records of topics to tables below `output_dir`, or with format iceberg to those of
    a `catalog`, each exactly once, as job ingest-topics does (docs/ingest.md); a run adds what is
    new. Where `spark` is None, processes of this machine do it, as `kafkalog export` does, without
    pyspark and Java. Return a row for each topic: the partitions, rows and offsets that the run
    wrote, and its findings. Log a warning for each finding, and for how many keys and values could
    not be decoded. On a terminal and in a notebook, stderr shows how far the run is, unless
    `show_progress` is false.

    `format` is delta, iceberg or parquet. `path` is a path or several, `topics` a topic or
    several, all but internal ones by default. `options` are those of the job, as Python values:
    `topic_pattern`, `suppress` (a file of identifiers), `isolation_level`, `from_time` and
    `until_time` (in the forms of `kafkalog.read`), `max_future_ms`,
    `full_refresh`, `catalog`, `table`, `table_per_topic`, `partition_by` (`["topic", "day"]`),
    `target_file_size`, `compression` and `compression_level`, and those that decode keys and
    values: `value_format`, `value_schema`, `value_message`, `value_schema_id`, the same for `key`,
    `schemas_topic`, `schema_registry`, `drop_decoded_bytes` and `merge_schema`, and `dead_letters`,
    the name of a table for the rows that cannot be decoded.

    Raises OptionError, LogDirError for a path without Kafka's files, and StatePositionError where
    the logs do not continue the table, or another run has written meanwhile.
    """
    known = {*_DEFAULTS, *_TIMES, *_OF_TABLES, *_OF_DECODING} - _NOT_HERE
    refuse_unknown_arguments(options, {*_NAMED, *known})
    if format not in FORMATS:
        raise OptionError("format", format, FORMATS)
    # What jobs and commands share names their options, or those of the source.
    with options_named_as({*_NAMED, *known}):
        request, tables, decoding = _requests({**options, "topics": _several(topics)})
        if output_dir and not is_remote(output_dir):
            output_dir = absolute_path(output_dir)
        place = requested_place(format, output_dir or None, tables)
        if spark is None:
            place.refuse_delta_of_spark()
        inputs = [entry.path for path in path_texts(path) for entry in input_entries(path)]
        if place.output_dir is not None:
            refuse_tables(place.output_dir, inputs)
        now_ms = time.time_ns() // 1_000_000
        read_options = request.options(inputs, mode, place.output_dir, now_ms=now_ms)
        suppress = request.suppress
        requests = decoding_requests(decoding, inputs, mode, has_suppression=suppress is not None)
        suppression = suppression_of(suppress, decoding, inputs)
        settings = ExportSettings(read_options, request, tables, place, decoding, suppression)
        refuse_dead_letters(decoding.dead_letters, place, is_decoding=bool(requests))
        with quiet(not show_progress):
            runs = _exported(spark, settings, requests)
    for line in verdict(runs)[1:]:
        _logger.warning("%s", line)
    return topic_rows(runs)


def _exported(
    spark: SparkSession | None, settings: ExportSettings, requests: Sequence[DecodingRequest]
) -> Sequence[IngestRun]:
    """Return the run of each table of records."""
    sources = found_sources(settings.options)
    if spark is None:
        logs = (log for source in sources for log in source.logs)
        size = bytes_in(logs)
        processes = processes_for(size, None)
        (_, runs), *_ = local_exports(settings, requests, processes, _logger.warning, sources)
        return runs
    from kafkalog.spark.frames import register_once
    from kafkalog.spark.lake.spark_export import export_tables

    register_once(spark)
    return export_tables(spark, settings, sources, requests)[0]


def _requests(given: dict[str, Any]) -> tuple[IngestRequest, TableRequest, TableDecodingOptions]:
    for name, field in _TIMES.items():
        if given.get(name) is not None:
            given[field] = milliseconds(name, given[name])
        given.pop(name, None)
    of_tables, of_decoding = (
        {name: given.pop(name) for name in names & given.keys()}
        for names in (_OF_TABLES, _OF_DECODING)
    )
    if "partition_by" in of_tables:
        of_tables["partition_by"] = _several(of_tables["partition_by"])
    request = IngestRequest(**{**_DEFAULTS, **given})
    return request, TableRequest(**of_tables), TableDecodingOptions(**of_decoding)


def _several(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())
