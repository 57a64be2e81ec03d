"""Each option of a read arrives as the same typed value, whichever face it was given to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import click
import pytest

import kafkalog
from kafkalog.command_line.commands.sql import sql as sql_command
from kafkalog.command_line.commands.tables.export import export
from kafkalog.spark import frames
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    FromTimestamp,
    NoMatch,
    SpecificOffsets,
    SpecificTimestamps,
    TimestampRange,
)
from kafkalog.tables import database, scan
from kafkalog.views.options.ingest_request import IngestRequest
from kafkalog.views.options.options import (
    MAX_TRIGGER_DELAY,
    OPTION_NAMES,
    STREAM_LIMITS,
    Isolation,
    Mode,
    Replicas,
    Shutdown,
    View,
    read_options,
)
from tests.support.repository import ROOT

LOG_DIR = str(ROOT / "examples" / "log-dirs" / "kafka-4.4")
# Brokers and streams alone use them, or they are arguments of their own.
ELSEWHERE = {"path", "paths", "view", *STREAM_LIMITS, MAX_TRIGGER_DELAY} | {
    *("groupIdPrefix", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
}
OFFSETS = {("orders", 0): 23}
TIMES = {("orders", 0): 1_700_000_000_000}
TIME = "2026-11-21T12:00:00Z"
TIME_MS = 1_795_262_400_000


class StoppedHereError(Exception):
    """A function went on to the one that is looked at."""


class Case(NamedTuple):
    """An option of the source with its text, the same as an argument of Python and of commands,
    and the typed value, which is a field of ReadOptions."""

    option: str
    text: str
    argument: Mapping[str, Any]
    field: str
    value: Any
    of_commands: Sequence[str] = ()


def _case(option: str, text: str, given: Any, field: str, value: Any, *command: str) -> Case:
    name = "".join(f"_{each.lower()}" if each.isupper() else each for each in option)
    return Case(option, text, given if isinstance(given, dict) else {name: given}, field, value,
                command)  # fmt: skip


CASES = [
    _case("columns", "key,value", {"columns": ["key", "value"]}, "columns", ("key", "value")),
    _case("includeHeaders", "TRUE", True, "include_headers", True),
    _case("includeMetadata", "true", True, "include_metadata", True),
    _case("subscribe", "a, b", {"topics": ["a", "b"]}, "topics.subscribe", ("a", "b"),
          "--topic", "a", "--topic", "b"),
    _case("subscribePattern", "o.*", "o.*", "topics.pattern", "o.*", "--topic-pattern", "o.*"),
    _case("assign", '{"orders":[0]}', {"topics": {"orders": [0]}}, "topics.assign",
          frozenset({("orders", 0)})),
    _case("startingTimestamp", "5", 5, "offsets.starting", FromTimestamp(5)),
    _case("endingTimestamp", "5", 5, "offsets.ending", FromTimestamp(5)),
    _case("startingOffsetsByTimestamp", '{"orders":{"0":1700000000000}}',
          '{"orders":{"0":1700000000000}}', "offsets.starting", SpecificTimestamps(TIMES)),
    _case("endingOffsetsByTimestamp", '{"orders":{"0":1700000000000}}',
          '{"orders":{"0":1700000000000}}', "offsets.ending", SpecificTimestamps(TIMES)),
    _case("startingOffsets", '{"orders":{"0":23}}',
          {"offsets": (23, None), "topics": {"orders": [0]}},
          "offsets.starting", SpecificOffsets(OFFSETS), "--offsets", "orders-0=23:"),
    _case("endingOffsets", '{"orders":{"0":23}}',
          {"offsets": (None, 23), "topics": {"orders": [0]}},
          "offsets.ending", SpecificOffsets(OFFSETS), "--offsets", "orders-0=:23"),
    _case("startingOffsetsByTimestampStrategy", "LATEST", "latest", "offsets.no_match",
          NoMatch.LATEST),
    _case("failOnDataLoss", "False", False, "fails_on_deleted", False),
    _case("stopAt", "highwatermark", "highWatermark", "offsets.end_rule", EndRule.HIGH_WATERMARK,
          "--stop-at", "highWatermark"),
    _case("fromTimestamp", str(TIME_MS), {"from_time": TIME}, "timestamps",
          TimestampRange(first_ms=TIME_MS)),
    _case("untilTimestamp", str(TIME_MS), {"until_time": TIME_MS}, "timestamps",
          TimestampRange(end_ms=TIME_MS)),
    _case("mode", "permissive", "PERMISSIVE", "mode", Mode.PERMISSIVE, "--mode", "PERMISSIVE"),
    _case("replicas", "all", "all", "replicas", Replicas.ALL),
    _case("kafka.check.crcs", "false", {"kafka.check.crcs": False}, "check_crcs", False),
    _case("maxBatchBytes", "1000", 1000, "max_batch_bytes", 1000),
    _case("maxPartitionBytes", "1000", 1000, "max_partition_bytes", 1000),
    _case("shutdown", "UNCLEAN", "unclean", "shutdown", Shutdown.UNCLEAN),
    _case("indexIntervalBytes", "10", 10, "index_interval_bytes", 10),
    _case("kafkaVersion", "3.9.2", "3.9.2", "kafka_version", "3.9.2"),
    _case("asOf", TIME, {"as_of": TIME}, "as_of_ms", TIME_MS, "--as-of", TIME),
    _case("latest", "true", True, "latest", True),
    _case("serverProperties", "f", "f", "configs.server_properties", "f"),
    _case("topicConfig", "f", "f", "configs.topic_config", "f"),
    _case("zookeeper", '["f"]', '["f"]', "configs.zookeeper", ("f",)),
    _case("chroot", "/kafka", "/kafka", "configs.chroot", "/kafka"),
    _case("showSecrets", "true", True, "show_secrets", True),
    _case("before", "f", "f", "before", "f"),
    _case("dropPageCache", "true", True, "file_access.drop_page_cache", True),
    _case("maxBytesPerSecond", "7", 7, "file_access.max_bytes_per_second", 7),
    _case("kafka.isolation.level", "read_committed", {"kafka.isolation.level": "read_committed"},
          "isolation", Isolation.READ_COMMITTED),
    _case("isolationLevel", "READ_COMMITTED", "read_committed", "isolation",
          Isolation.READ_COMMITTED, "--isolation-level", "read_committed"),
    _case("minPartitions", "3", 3, "min_partitions", 3),
    _case("maxRecordsPerPartition", "3", 3, "max_records_per_partition", 3),
]  # fmt: skip
# Which of them a command has.
EXPORTED = {"--topic", "--topic-pattern", "--offsets", "--mode"}
QUERIED = {"--topic", "--as-of", "--mode", "--isolation-level"}
# What is the default of export elsewhere has the other value here.
OF_EXPORT = [
    *(each for each in CASES if {*each.of_commands} & EXPORTED),
    _case("stopAt", "logEnd", "logEnd", "offsets.end_rule", EndRule.LOG_END, "--stop-at", "logEnd"),
    _case("isolationLevel", "read_uncommitted", "read_uncommitted", "isolation",
          Isolation.READ_UNCOMMITTED, "--isolation-level", "read_uncommitted"),
]  # fmt: skip


def test_every_option_of_the_source_has_a_case() -> None:
    assert {each.option for each in CASES} == {*OPTION_NAMES} - ELSEWHERE
    assert len(CASES) == len({each.option for each in CASES})


def typed(given: Mapping[str, str], field: str) -> Any:
    return attrgetter(field)(read_options({"path": LOG_DIR, **given}))


def called(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, call: Callable[[], Any]
) -> tuple[Any, ...]:
    """Return the arguments of the first call of a function, which ends the caller."""
    seen: list[tuple[Any, ...]] = []

    def stop(*arguments: Any, **_: Any) -> None:
        seen.append(arguments)
        raise StoppedHereError

    monkeypatch.setattr(module, name, stop)
    with pytest.raises(StoppedHereError):
        call()
    return seen[0]


@pytest.mark.parametrize("case", CASES, ids=[each.option for each in CASES])
def test_read_scan_and_sql_pass_on_the_same_value(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typed({}, case.field) != case.value
    assert typed({case.option: case.text}, case.field) == case.value
    _, of_read = called(
        *(monkeypatch, frames, "refuse_early"),
        lambda: kafkalog.read(None, LOG_DIR, **case.argument),  # type: ignore[arg-type]
    )
    _, _, of_scan, *_ = called(
        monkeypatch, scan, "scan_of", lambda: kafkalog.scan(LOG_DIR, **case.argument)
    )
    assert of_read == of_scan
    assert typed(of_read, case.field) == case.value
    if not {"columns", "offsets"} & case.argument.keys():
        _, of_sql, *_ = called(
            monkeypatch, database, "opened_database", lambda: kafkalog.sql(LOG_DIR, **case.argument)
        )
        assert of_sql == of_scan


@pytest.mark.parametrize(
    "case", [each for each in CASES if {*each.of_commands} & QUERIED], ids=lambda case: case.option
)
def test_command_sql_passes_on_the_same_value(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    _, given, *_ = called(
        *(monkeypatch, database, "opened_database"),
        lambda: sql_command.main([LOG_DIR, *case.of_commands, "select 1"], standalone_mode=False),
    )
    assert typed(given, case.field) == case.value


@pytest.mark.parametrize(
    "case", [each for each in CASES if {*each.of_commands} & EXPORTED], ids=lambda case: case.option
)
def test_export_passes_on_the_same_value(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkalog.command_line.export import run

    arguments = [LOG_DIR, "--output-dir", "out", *case.of_commands]
    settings, request, *_ = called(
        *(monkeypatch, run, "run_export"), lambda: export.main(arguments, standalone_mode=False)
    )
    assert isinstance(request, IngestRequest)
    found = request.options([LOG_DIR], settings.mode, None, now_ms=TIME_MS)
    assert attrgetter(case.field)(found) == case.value
    assert found.view is View.RECORDS


def test_functions_of_python_declare_an_argument_in_the_same_way() -> None:
    of_scan, *others = (
        inspect.signature(each).parameters for each in (kafkalog.scan, kafkalog.read, kafkalog.sql)
    )
    for parameters in others:
        for name, parameter in parameters.items():
            assert name == "spark" or parameter == of_scan[name]
    of_command = {each.name for each in sql_command.params if isinstance(each, click.Option)}
    assert {each for each in of_command if each in of_scan} >= {
        *("topics", "as_of", "value_format", "value_schema", "schemas_topic", "schema_registry"),
        "processes",
    }
