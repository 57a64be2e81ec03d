"""All options of a read together: Spark's own, ours, and those that mean nothing to files."""

import pickle
from dataclasses import replace

import pytest

from kafkalog.errors import OptionError
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.storage.files.file_access import FileAccess
from kafkalog.storage.reading.log_bounds import EndRule
from kafkalog.storage.reading.offset_ranges import (
    FromTimestamp,
    NoMatch,
    OffsetRequest,
    TimestampRange,
)
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.options import (
    DEFAULT_PARTITION_BYTES,
    OPTION_NAMES,
    Isolation,
    Mode,
    ReadOptions,
    Replicas,
    Shutdown,
    View,
    read_options,
    without_effect_words,
)
from kafkalog.views.options.topics import TopicChoice

MIB = 1024 * 1024
DEFAULTS = ReadOptions(
    paths=("data",),
    view=View.RECORDS,
    columns=None,
    include_headers=False,
    include_metadata=False,
    topics=TopicChoice(),
    offsets=OffsetRequest(),
    timestamps=None,
    mode=Mode.FAILFAST,
    fails_on_deleted=True,
    replicas=Replicas.BEST,
    isolation=Isolation.READ_UNCOMMITTED,
    check_crcs=True,
    max_batch_bytes=MAX_BATCH_BYTES,
    max_partition_bytes=128 * MIB,
    min_partitions=1,
    max_records_per_partition=None,
    shutdown=Shutdown.AS_FOUND,
    index_interval_bytes=4096,
    as_of_ms=0,
    configs=ConfigSources(),
    latest=False,
    show_secrets=False,
    before=None,
    without_effect=(),
    file_access=FileAccess(),
)

# The options of Spark's Kafka source that mean the same to files, each with a value.
SHARED = {
    "subscribe": "orders",
    "subscribePattern": "orders.*",
    "assign": '{"orders":[0]}',
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "startingTimestamp": "5",
    "endingTimestamp": "5",
    "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
    "endingOffsetsByTimestamp": '{"orders":{"0":5}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "failOnDataLoss": "false",
    "includeHeaders": "true",
    "kafka.isolation.level": "read_uncommitted",
    "kafka.check.crcs": "false",
}
# Those that speak to a broker or shape streams.
WITHOUT_EFFECT = {
    "maxOffsetsPerTrigger": "1000",
    "minOffsetsPerTrigger": "10",
    "maxTriggerDelay": "15m",
    "groupIdPrefix": "spark",
    "kafkaConsumer.pollTimeoutMs": "120000",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "1000",
    "kafka.bootstrap.servers": "broker:9092",
    "kafka.group.id": "group",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.jaas.config": "password",
    "kafka.auto.offset.reset": "earliest",
    "kafka.max.poll.records": "500",
}


def test_only_a_path_is_needed() -> None:
    assert read_options({"path": "data"}) == DEFAULTS
    assert DEFAULT_PARTITION_BYTES == 128 * MIB


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"view": "batches"}, replace(DEFAULTS, view=View.BATCHES)),
        ({"view": "BYTE_RANGES"}, replace(DEFAULTS, view=View.BYTE_RANGES)),
        ({"view": "faults"}, replace(DEFAULTS, view=View.FAULTS)),
        ({"columns": "offset, value"}, replace(DEFAULTS, columns=("offset", "value"))),
        ({"includeHeaders": "true"}, replace(DEFAULTS, include_headers=True)),
        ({"includeMetadata": "true"}, replace(DEFAULTS, include_metadata=True)),
        ({"subscribe": "a,b"}, replace(DEFAULTS, topics=TopicChoice(subscribe=("a", "b")))),
        ({"subscribePattern": "a.*"}, replace(DEFAULTS, topics=TopicChoice(pattern="a.*"))),
        (
            {"assign": '{"a":[0,1]}'},
            replace(DEFAULTS, topics=TopicChoice(assign=frozenset({("a", 0), ("a", 1)}))),
        ),
        (
            {"stopAt": "highWatermark"},
            replace(DEFAULTS, offsets=OffsetRequest(end_rule=EndRule.HIGH_WATERMARK)),
        ),
        ({"view": "messages"}, replace(DEFAULTS, view=View.MESSAGES)),
        (
            {"view": "offset_commits", "latest": "true"},
            replace(DEFAULTS, view=View.OFFSET_COMMITS, latest=True),
        ),
        ({"showSecrets": "true"}, replace(DEFAULTS, show_secrets=True)),
        ({"mode": "PERMISSIVE"}, replace(DEFAULTS, mode=Mode.PERMISSIVE, fails_on_deleted=False)),
        (
            {"mode": "dropMalformed"},
            replace(DEFAULTS, mode=Mode.DROPMALFORMED, fails_on_deleted=False),
        ),
        ({"mode": "PERMISSIVE", "failOnDataLoss": "true"}, replace(DEFAULTS, mode=Mode.PERMISSIVE)),
        ({"kafka.check.crcs": "false"}, replace(DEFAULTS, check_crcs=False)),
        ({"maxBatchBytes": "1000"}, replace(DEFAULTS, max_batch_bytes=1000)),
        ({"maxBatchBytes": "2147483647"}, replace(DEFAULTS, max_batch_bytes=2**31 - 1)),
        ({"maxPartitionBytes": "1"}, replace(DEFAULTS, max_partition_bytes=1)),
        ({"fromTimestamp": "5"}, replace(DEFAULTS, timestamps=TimestampRange(5, 2**63))),
        ({"untilTimestamp": "9"}, replace(DEFAULTS, timestamps=TimestampRange(1 - 2**63, 9))),
        (
            {"fromTimestamp": "5", "untilTimestamp": "5"},
            replace(DEFAULTS, timestamps=TimestampRange(5, 5)),
        ),
        ({"minPartitions": "10"}, replace(DEFAULTS, min_partitions=10)),
        ({"maxRecordsPerPartition": "1000"}, replace(DEFAULTS, max_records_per_partition=1000)),
        ({"isolationLevel": "read_uncommitted"}, DEFAULTS),
        ({"kafka.isolation.level": "READ_UNCOMMITTED"}, DEFAULTS),
    ],
)
def test_an_option_changes_what_it_says(given: dict[str, str], expected: ReadOptions) -> None:
    options = {"path": "data", **given}
    lower_case = {name.lower(): value for name, value in options.items()}
    assert [read_options(options), read_options(lower_case)] == [expected, expected]


def test_all_options_of_a_job_on_sparks_kafka_source_are_taken() -> None:
    """A job changes only `format(...)`."""
    given = {
        **WITHOUT_EFFECT,
        "subscribe": "orders",
        "startingTimestamp": "5",
        "endingTimestamp": "9",
        "startingOffsetsByTimestampStrategy": "latest",
        "failOnDataLoss": "false",
        "includeHeaders": "true",
        "path": "data",
    }
    assert read_options(given) == replace(
        DEFAULTS,
        without_effect=tuple(sorted(WITHOUT_EFFECT)),
        include_headers=True,
        topics=TopicChoice(subscribe=("orders",)),
        offsets=OffsetRequest(
            starting=FromTimestamp(5),
            ending=FromTimestamp(9),
            starting_option="startingTimestamp",
            ending_option="endingTimestamp",
            no_match=NoMatch.LATEST,
            fail_on_data_loss=False,
        ),
        fails_on_deleted=False,
    )


@pytest.mark.parametrize("name", SHARED)
def test_options_with_an_effect_are_not_reported_to_have_none(name: str) -> None:
    assert read_options({"path": "data", name: SHARED[name]}).without_effect == ()


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_an_option_without_effect_is_ignored_and_named(name: str) -> None:
    options = read_options({"path": "data", name: WITHOUT_EFFECT[name]})
    assert options == replace(DEFAULTS, without_effect=(name,))


def test_all_options_without_effect_are_named() -> None:
    options = read_options({"path": "data", **WITHOUT_EFFECT})
    assert sorted(options.without_effect) == sorted(WITHOUT_EFFECT)


@pytest.mark.parametrize("name", ["kafka.isolation.level", "isolationLevel"])
@pytest.mark.parametrize("value", ["read_committed", "READ_COMMITTED"])
def test_committed_records_are_requested_by_either_name(name: str, value: str) -> None:
    options = read_options({"path": "data", name: value})
    assert options == replace(DEFAULTS, isolation=Isolation.READ_COMMITTED)


def test_two_isolation_levels_that_differ_are_an_error() -> None:
    given = {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"}
    with pytest.raises(OptionError, match=r"the same as kafka\.isolation\.level"):
        read_options({"path": "data", **given})


def test_an_isolation_level_has_no_effect_on_views_of_files() -> None:
    options = read_options({"path": "data", "view": "batches", "isolationLevel": "read_committed"})
    assert options.without_effect == ("isolationLevel",)


def test_a_past_time_has_an_effect_only_where_something_had_a_state_then() -> None:
    # F1350; where it has one, the view's own tests show it.
    def unused(**given: str) -> str | None:
        return without_effect_words(read_options({"path": "data", "asOf": "5", **given}))

    for view in ("records", "messages", "batches", "segments", "offset_commits"):
        assert f"--as-of (asOf) does not apply to {view}, " in (unused(view=view) or "")
    for view in ("retention_plan", "stable_offsets", "cluster_topics", "metadata_changes"):
        assert unused(view=view) is None
    assert unused(view="offset_commits", latest="true") is None
    assert str(unused(view="batches", maxTriggerDelay="1m")).startswith(
        "options without effect here: maxTriggerDelay; --as-of"
    )


@pytest.mark.parametrize("name", ["topic", "subscribePatterns", "start_offsets", "recursive"])
def test_an_unknown_option_is_an_error_naming_it_and_all_there_are(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({"path": "data", name: "1"})
    assert (caught.value.name, caught.value.value) == (name, "1")
    for known in OPTION_NAMES:
        assert known in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("view", "rows", "records, batches, byte_ranges, faults"),
        ("mode", "LAX", "FAILFAST, PERMISSIVE, DROPMALFORMED"),
        ("columns", ",", "commas"),
        ("includeHeaders", "yes", "true, false"),
        ("includeMetadata", "1", "true, false"),
        ("failOnDataLoss", "no", "true, false"),
        ("showSecrets", "all", "true, false"),
        ("latest", "all", "true, false"),
        ("kafka.check.crcs", "off", "true, false"),
        ("kafka.isolation.level", "serializable", "read_uncommitted, read_committed"),
        ("isolationLevel", "", "read_uncommitted, read_committed"),
        ("maxBatchBytes", "0", "from 1 to 2147483647"),
        ("maxBatchBytes", "2147483648", "from 1 to 2147483647"),
        ("maxPartitionBytes", "128m", "from 1 to "),
        ("fromTimestamp", "yesterday", "milliseconds since 1970"),
        ("untilTimestamp", "-1", "milliseconds since 1970"),
        ("minPartitions", "0", "from 1 to "),
        ("minPartitions", "many", "from 1 to "),
        ("maxRecordsPerPartition", "-1", "from 1 to "),
        ("stopAt", "end", "logEnd, highWatermark"),
        ("startingOffsets", "latest", "earliest"),
        ("subscribe", "", "commas"),
        ("assign", "orders", "JSON"),
        ("subscribePattern", "(", "regular expression"),
    ],
)
def test_a_bad_value_is_an_error_naming_option_and_allowed_values(
    name: str, value: str, allowed: str
) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({"path": "data", name.lower(): value})
    assert (caught.value.name, caught.value.value) == (name, value)
    assert name in str(caught.value)
    assert allowed in str(caught.value)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"path": "data"}, ("data",)),
        ({"path": "/mnt/disk*/kafka,logs"}, ("/mnt/disk*/kafka,logs",)),
        ({"paths": '["a"]'}, ("a",)),
        ({"paths": '["a","b c","d*"]'}, ("a", "b c", "d*")),
    ],
)
def test_paths_come_as_spark_hands_them_over(given: dict[str, str], paths: tuple[str, ...]) -> None:
    # load("a") sets path; load(["a", "b"]) sets paths, as JSON.
    assert read_options(given) == replace(DEFAULTS, paths=paths)


@pytest.mark.parametrize("given", [{}, {"path": ""}, {"paths": "[]"}])
def test_no_path_is_an_error_naming_the_option(given: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(given)
    assert caught.value.name == "path"
    for allowed in ("log directory", "partition directory", ".log file", "glob"):
        assert allowed in str(caught.value)


@pytest.mark.parametrize("value", ["data", "a,b", "", '"data"', "5", "null", '{"a":1}', "[1]"])
def test_paths_that_are_not_a_list_of_strings_are_an_error_naming_the_option(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options({"paths": value})
    assert (caught.value.name, caught.value.value) == ("paths", value)


def test_options_survive_the_way_to_a_task() -> None:
    options = read_options({"path": "data", "assign": '{"a":[0]}', "startingTimestamp": "5"})
    assert pickle.loads(pickle.dumps(options)) == options
