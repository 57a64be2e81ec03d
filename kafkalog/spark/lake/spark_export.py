"""An export in a Spark session: whether tasks write the files or Spark's writer does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from kafkalog.lake.decoding.decoding_requests import DecodingRequest
from kafkalog.lake.export_plan import ExportPlan, ExportTable, no_columns, plan_export
from kafkalog.lake.formats.dead_letters import dead_letters_line, other_tables
from kafkalog.lake.formats.local_export import ExportSettings
from kafkalog.lake.formats.targets import DELTA, ICEBERG, table_target
from kafkalog.lake.layout import RECORDS, TableLayout
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.target import Target
from kafkalog.log_lines import logger
from kafkalog.spark.lake.decoded_rows import DecodedRows
from kafkalog.spark.lake.delta_manifest import DeltaManifest
from kafkalog.spark.lake.delta_table import DeltaTarget
from kafkalog.spark.lake.task_files import (
    reported,
    rows_of_tasks,
    written_after_decoding,
    written_by_tasks,
)
from kafkalog.spark.session import parallelism, refuse_forgotten_table
from kafkalog.views.planning.ingest_positions import IngestRun
from kafkalog.views.planning.table_positions import StateSource

_logger = logger(__name__)


def export_tables(
    spark: SparkSession,
    settings: ExportSettings,
    sources: Sequence[StateSource],
    decodings: Sequence[DecodingRequest] = (),
) -> tuple[tuple[IngestRun, ...], list[str]]:
    """Add what is new of the sources to tables, with keys or values decoded as requested; return
    the run of each table, and lines that say where the tables are that were written.

    Raises what planning, reading, writing and committing raise.
    """
    name = settings.decoding.dead_letters
    layout = settings.tables.layout()
    target_of = _targets(spark, settings, layout)

    def written(
        target_of: Callable[[str], Target], decoding: DecodedRows | None, *, per_topic: bool
    ) -> tuple[ExportPlan, tuple[IngestRun, ...]]:
        plan = plan_export(
            settings.options,
            settings.request,
            target_of,
            table_per_topic=per_topic,
            target_file_bytes=layout.target_file_bytes,
            processes=parallelism(spark),
            found=sources,
            decoded_columns=no_columns if decoding is None else decoding.columns,
        )
        plan = plan.without(settings.suppression)
        return plan, plan.ended(_exported(spark, plan, decoding))

    decoding = DecodedRows(spark, decodings, settings.decoding) if decodings else None
    plan, runs = written(
        other_tables(target_of, name), decoding, per_topic=settings.tables.table_per_topic
    )
    lines = [f"tables: {' '.join(_places(plan, settings))}"]
    if name is not None:
        faulty = DecodedRows(spark, decodings, settings.decoding, is_for_faults=True)
        plan, dead = written(lambda _: target_of(name), faulty, per_topic=False)
        lines += [dead_letters_line(dead, _location(table, settings)) for table in plan.tables]
    return runs, lines


def _targets(
    spark: SparkSession, settings: ExportSettings, layout: TableLayout
) -> Callable[[str], Target]:
    """Return what gives the table of a name: below the directory, or the one that is requested by
    its name in a catalog."""
    place = settings.place
    if place.table_format != DELTA:
        return table_target(place, layout)
    if place.table is not None:
        refuse_forgotten_table(spark, place.table)
    manifest = DeltaManifest(spark, place.location(MANIFEST))

    def target_of(name: str) -> Target:
        place.refuse_other_formats(name)
        if place.table is not None:
            table = place.table if name == RECORDS else name
            return DeltaTarget(spark, table, manifest, layout, is_name=True)
        return DeltaTarget(spark, place.location(name), manifest, layout)

    return target_of


def _places(plan: ExportPlan, settings: ExportSettings) -> list[str]:
    places = [_location(table, settings) for table in plan.tables]
    is_written = any(table.output is not None for table in plan.tables)
    if is_written and settings.place.table_format != ICEBERG:
        places.append(settings.place.location(MANIFEST))
    return places


def _location(table: ExportTable, settings: ExportSettings) -> str:
    if isinstance(table.target, DeltaTarget):
        return table.target.place
    return settings.place.location(table.name)


def _exported(
    spark: SparkSession, plan: ExportPlan, decoding: DecodedRows | None
) -> tuple[IngestRun, ...]:
    """Carry out an export; return the run of each table, with the number of rows of each range."""
    reason = _why_by_spark(plan)
    if reason is not None:
        _logger.info("Spark's writer writes the tables: %s", reason)
        return tuple(_written_by_spark(spark, plan, table, decoding) for table in plan.tables)
    if decoding is None:
        _logger.info("tasks write the files of the tables")
        return plan.commit(written_by_tasks(spark, plan))
    _logger.info("tasks write the files of the tables, after Spark's functions decode the rows")
    return plan.commit(written_after_decoding(spark, plan, decoding.rows))


def _why_by_spark(plan: ExportPlan) -> str | None:
    """Return why Spark's writer has to write all tables, None where tasks can."""
    for table in plan.tables:
        if table.output is not None and isinstance(table.target, DeltaTarget):
            reason = table.target.why_by_spark(table.run)
            if reason is not None:
                return reason
    return None


def _written_by_spark(
    spark: SparkSession, plan: ExportPlan, table: ExportTable, decoding: DecodedRows | None
) -> IngestRun:
    if table.output is None or not isinstance(table.target, DeltaTarget):
        return table.run
    own = [
        tuple(read for read in group if plan.task.outputs[read.topic or ""].table == table.name)
        for group in plan.groups
    ]
    with reported(spark, plan) as report:
        rows = rows_of_tasks(spark, plan.task, [group for group in own if group], report)
        return table.target.write(rows if decoding is None else decoding.rows(rows), table.run)
