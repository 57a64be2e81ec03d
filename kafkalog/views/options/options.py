"""The options of `format("kafkalog")`, with the names and meanings of Spark's Kafka source where it
has them. Reference: docs/options.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from kafkalog.coordination.metadata.releases import A_VERSION, VERSION
from kafkalog.errors import OptionError
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.schemas import table_fields
from kafkalog.storage.files.file_access import FileAccess
from kafkalog.storage.reading.offset_ranges import OffsetRequest, TimeRule, TimestampRange
from kafkalog.views.options.config_files import CONFIG_OPTIONS, ConfigSources
from kafkalog.views.options.offset_options import (
    FAIL_ON_DATA_LOSS,
    OFFSET_OPTIONS,
    TIME_OPTIONS,
    offset_request,
    timestamp_range,
)
from kafkalog.views.options.option_values import OptionValues
from kafkalog.views.options.topics import TOPIC_OPTIONS, TopicChoice, topic_choice
from kafkalog.words import name_suggestions

DEFAULT_PARTITION_BYTES = 128 * 1024 * 1024
# Arrow counts the bytes of a column with 32 bits.
_LARGEST_BATCH_BYTES = 2**31 - 1


class View(Enum):
    """The views of a read: what a row is."""

    RECORDS = "records"
    BATCHES = "batches"
    BYTE_RANGES = "byte_ranges"
    FAULTS = "faults"
    SEGMENTS = "segments"
    RECOVERY_PLAN = "recovery_plan"
    RETENTION_PLAN = "retention_plan"
    REPLICAS = "replicas"
    TRANSACTIONS = "transactions"
    STABLE_OFFSETS = "stable_offsets"
    PRODUCER_SEQUENCES = "producer_sequences"
    MESSAGES = "messages"
    OFFSET_COMMITS = "offset_commits"
    GROUP_METADATA = "group_metadata"
    TRANSACTION_STATES = "transaction_states"
    COMPACTION_REPORT = "compaction_report"
    CLUSTER_TOPICS = "cluster_topics"
    CLUSTER_PARTITIONS = "cluster_partitions"
    CLUSTER_CONFIGS = "cluster_configs"
    CLUSTER_ACLS = "cluster_acls"
    METADATA_CHANGES = "metadata_changes"


# Exactly the columns of Spark's own Kafka source.
KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS_COLUMN = "headers"

VIEW_TABLES = {view: view.value for view in View} | {View.FAULTS: View.BYTE_RANGES.value}
# Views in which `isolationLevel` leaves out records that are not committed.
ISOLATED_VIEWS = (View.RECORDS, View.MESSAGES)
# Views with a row for each record: they begin at the log start, and have `mode` and `replicas`.
RECORD_VIEWS = (*ISOLATED_VIEWS, View.OFFSET_COMMITS, View.GROUP_METADATA, View.TRANSACTION_STATES)
# Those whose rows depend on their own records alone, so that segments are read in parts.
SPLIT_VIEWS = tuple(view for view in RECORD_VIEWS if view is not View.OFFSET_COMMITS)
# Views of a broker's start, which is judged also where a partition is in two directories.
START_VIEWS = (View.RECOVERY_PLAN, View.PRODUCER_SEQUENCES)
# Views of what the best copy of the cluster's metadata says.
METADATA_VIEWS = (
    View.CLUSTER_TOPICS,
    View.CLUSTER_PARTITIONS,
    View.CLUSTER_CONFIGS,
    View.CLUSTER_ACLS,
    View.METADATA_CHANGES,
)
# Views of which `latest` reads the rows that count only.
_LATEST_VIEWS = (View.OFFSET_COMMITS, View.GROUP_METADATA)
# Views with rows about whole partitions, one by one.
PARTITION_VIEWS = (
    View.SEGMENTS,
    View.RECOVERY_PLAN,
    View.RETENTION_PLAN,
    View.TRANSACTIONS,
    View.STABLE_OFFSETS,
    View.PRODUCER_SEQUENCES,
    View.COMPACTION_REPORT,
)
# Views that need a time; they go by the settings of topics.
PLAN_VIEWS = (View.RETENTION_PLAN, View.COMPACTION_REPORT)
# Views that `asOf` is for; of `_LATEST_VIEWS` with `latest`.
_PAST_VIEWS = (
    *(View.RECOVERY_PLAN, *PLAN_VIEWS, View.TRANSACTIONS, View.STABLE_OFFSETS),
    *METADATA_VIEWS,
)


class Mode(Enum):
    """What a read does about damage in views `records` and `messages`."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


class Shutdown(Enum):
    """How the broker stopped before the start of view `recovery_plan`."""

    AS_FOUND = "asFound"
    CLEAN = "clean"
    UNCLEAN = "unclean"


class Replicas(Enum):
    """Which replicas a read takes records from if there are several."""

    BEST = "best"
    ALL = "all"


class Isolation(Enum):
    """Whether a read returns records of aborted and open transactions."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """All options of a batch read, checked, with their defaults."""

    paths: tuple[str, ...]
    view: View = View.RECORDS
    columns: tuple[str, ...] | None = None
    include_headers: bool = False
    include_metadata: bool = False
    topics: TopicChoice = field(default_factory=TopicChoice)
    offsets: OffsetRequest = field(default_factory=OffsetRequest)
    timestamps: TimestampRange | None = None
    mode: Mode = Mode.FAILFAST
    fails_on_deleted: bool = True
    replicas: Replicas = Replicas.BEST
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    check_crcs: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES
    max_partition_bytes: int = DEFAULT_PARTITION_BYTES
    min_partitions: int = 1
    max_records_per_partition: int | None = None
    shutdown: Shutdown = Shutdown.AS_FOUND
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    kafka_version: str | None = None
    as_of_ms: int = 0
    latest: bool = False
    configs: ConfigSources = field(default_factory=ConfigSources)
    show_secrets: bool = False
    before: str | None = None
    without_effect: tuple[str, ...] = ()
    file_access: FileAccess = field(default_factory=FileAccess)
    has_value_bytes: bool = True

    def by_time_rule(self, rule: TimeRule) -> ReadOptions:
        """Return the same options, with doubtful times treated by a rule (F930)."""
        return replace(self, offsets=replace(self.offsets, time_rule=rule))

    def of_tasks(self) -> ReadOptions:
        """Return the options that tasks need: which partitions and offsets they read is planned."""
        offsets = OffsetRequest(fail_on_data_loss=self.offsets.fail_on_data_loss)
        return replace(self, topics=TopicChoice(), offsets=offsets)


_DEFAULT = ReadOptions(())
_PATHS_ALLOWED = "a log directory, a partition directory, a .log file, or a glob of these"
_ISOLATION = ("kafka.isolation.level", "isolationLevel")
_AS_OF = "asOf"
_LATEST = "latest"
_BEFORE = "before"
_DROP_PAGE_CACHE = "dropPageCache"
_MOST_BYTES_PER_SECOND = "maxBytesPerSecond"
_MIN_PARTITIONS, _MAX_RECORDS = "minPartitions", "maxRecordsPerPartition"
# The most and the least for a micro-batch of a stream, and how long it waits for the least.
STREAM_LIMITS = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger")
MAX_TRIGGER_DELAY = "maxTriggerDelay"
# Options of Spark's Kafka source that concern brokers.
_NOT_FOR_FILES = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_NOT_IN_BATCHES = (*STREAM_LIMITS, MAX_TRIGGER_DELAY, *_NOT_FOR_FILES)
OPTION_NAMES = (
    "path",
    "paths",
    "view",
    "columns",
    "includeHeaders",
    "includeMetadata",
    *TOPIC_OPTIONS,
    *OFFSET_OPTIONS,
    *TIME_OPTIONS,
    "mode",
    "replicas",
    "kafka.check.crcs",
    "maxBatchBytes",
    "maxPartitionBytes",
    "shutdown",
    "indexIntervalBytes",
    "kafkaVersion",
    _AS_OF,
    _LATEST,
    *CONFIG_OPTIONS,
    "showSecrets",
    _BEFORE,
    _DROP_PAGE_CACHE,
    _MOST_BYTES_PER_SECOND,
    *_ISOLATION,
    _MIN_PARTITIONS,
    _MAX_RECORDS,
    *STREAM_LIMITS,
    MAX_TRIGGER_DELAY,
    *_NOT_FOR_FILES,
)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse and check the options of a batch read. Raises OptionError naming the option."""
    options = OptionValues(given, OPTION_NAMES)
    for name in STREAM_LIMITS:
        options.number(name, default=1)
    unused = [
        *options.unused,
        *(name for name in _NOT_IN_BATCHES if options.text(name) is not None),
    ]
    view = options.choice("view", default=_DEFAULT.view)
    isolation = _isolation(options)
    if view not in ISOLATED_VIEWS and isolation is Isolation.READ_COMMITTED:
        unused += [name for name in _ISOLATION if options.text(name) is not None]
    if view not in SPLIT_VIEWS:
        unused += [name for name in TIME_OPTIONS if options.text(name) is not None]
    most_records = options.number(_MAX_RECORDS, default=2**63 - 1)
    if view not in SPLIT_VIEWS and options.text(_MAX_RECORDS) is not None:
        unused.append(_MAX_RECORDS)
    if view not in _LATEST_VIEWS and options.text(_LATEST) is not None:
        unused.append(_LATEST)
    latest = options.flag(_LATEST, default=_DEFAULT.latest)
    has_past = view in _PAST_VIEWS or (latest and view in _LATEST_VIEWS)
    if options.text(_AS_OF) is not None and not has_past:
        unused.append(_AS_OF)
    if view in PLAN_VIEWS and options.text(_AS_OF) is None:
        raise OptionError(_AS_OF, None, "the time of the plan, such as 2026-11-21T12:00:00Z")
    mode = options.choice("mode", default=_DEFAULT.mode)
    return ReadOptions(
        paths=options.paths(_PATHS_ALLOWED),
        view=view,
        columns=options.listed("columns"),
        include_headers=options.flag("includeHeaders", default=_DEFAULT.include_headers),
        include_metadata=options.flag("includeMetadata", default=_DEFAULT.include_metadata),
        topics=topic_choice(options),
        offsets=offset_request(options),
        timestamps=timestamp_range(options),
        mode=mode,
        fails_on_deleted=options.flag(FAIL_ON_DATA_LOSS, default=mode is Mode.FAILFAST),
        replicas=options.choice("replicas", default=_DEFAULT.replicas),
        isolation=isolation,
        check_crcs=options.flag("kafka.check.crcs", default=_DEFAULT.check_crcs),
        max_batch_bytes=options.number(
            "maxBatchBytes", default=_DEFAULT.max_batch_bytes, largest=_LARGEST_BATCH_BYTES
        ),
        max_partition_bytes=options.number(
            "maxPartitionBytes", default=_DEFAULT.max_partition_bytes
        ),
        min_partitions=options.number(
            _MIN_PARTITIONS, default=_DEFAULT.min_partitions, largest=2**31 - 1
        ),
        max_records_per_partition=None if options.text(_MAX_RECORDS) is None else most_records,
        shutdown=options.choice("shutdown", default=_DEFAULT.shutdown),
        index_interval_bytes=options.number(
            "indexIntervalBytes", default=_DEFAULT.index_interval_bytes
        ),
        kafka_version=_kafka_version(options),
        as_of_ms=options.time_ms(_AS_OF, default=_DEFAULT.as_of_ms),
        latest=latest,
        configs=ConfigSources.of_options(options),
        show_secrets=options.flag("showSecrets", default=_DEFAULT.show_secrets),
        before=options.text(_BEFORE),
        without_effect=tuple(sorted(unused)),
        file_access=_file_access(options),
    )


def _kafka_version(options: OptionValues) -> str | None:
    text = options.text("kafkaVersion")
    if text is not None and not VERSION.fullmatch(text):
        raise OptionError("kafkaVersion", text, A_VERSION)
    return text


def without_effect_words(options: ReadOptions) -> str | None:
    """Return a line about the options that have no effect on a view, None without such."""
    unused = [name for name in options.without_effect if name != _AS_OF]
    words = [f"options without effect here: {', '.join(unused)}"] if unused else []
    if _AS_OF in options.without_effect:
        words.append(without_past_words(options.view.value))
    return "; ".join(words) or None


def without_past_words(table: str) -> str:
    """Return that a table has no state of a past time, and what to do. Rule: docs/sql.md F1350."""
    return (
        f"--as-of (asOf) does not apply to {table}, which has all rows that are here, later ones "
        "too: choose rows by their times, such as `where timestamp <= '2026-11-21 12:00:00Z'`"
    )


def _file_access(options: OptionValues) -> FileAccess:
    is_limited = options.text(_MOST_BYTES_PER_SECOND) is not None
    return FileAccess(
        storage=options.storage(),
        drop_page_cache=options.flag(_DROP_PAGE_CACHE, default=False),
        max_bytes_per_second=(
            options.number(_MOST_BYTES_PER_SECOND, default=1) if is_limited else None
        ),
    )


def _isolation(options: OptionValues) -> Isolation:
    given = [name for name in _ISOLATION if options.text(name) is not None]
    choices = [options.choice(name, default=_DEFAULT.isolation) for name in given]
    if len(set(choices)) > 1:
        raise OptionError(given[1], options.text(given[1]), f"the same as {given[0]}")
    return choices[0] if choices else _DEFAULT.isolation


def view_option_texts(view: str, options: Mapping[str, str | int | None]) -> dict[str, str]:
    """Return the source's options as texts, without those that are None: internal topics are
    included, damage is logged and skipped."""
    given = {"view": view, "mode": Mode.PERMISSIVE.value, "subscribe": "*", **options}
    return {name: str(value) for name, value in given.items() if value is not None}


def view_options(log_dirs: Sequence[str], view: str, **options: str | int | None) -> ReadOptions:
    """Return the source's options, as `view_option_texts` has them."""
    return read_options({"paths": json.dumps(list(log_dirs)), **view_option_texts(view, options)})


def columns_of_table(table: str) -> tuple[str, ...]:
    """Return the names of all columns of a table."""
    return tuple(field["name"] for field in table_fields(table))


def view_columns(options: ReadOptions) -> tuple[str, ...]:
    """Return the columns that a read gives where nothing else says which. Raises OptionError for
    a column that the view does not have."""
    whole = columns_of_table(VIEW_TABLES[options.view])
    if options.columns is not None:
        return chosen_columns(options.view.value, whole, options.columns)
    if options.view is not View.RECORDS:
        return whole
    metadata = [name for name in whole if name not in (*KAFKA_COLUMNS, HEADERS_COLUMN)]
    return (
        *KAFKA_COLUMNS,
        *([HEADERS_COLUMN] if options.include_headers else []),
        *(metadata if options.include_metadata else []),
    )


def chosen_columns(view: str, whole: Sequence[str], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that option `columns` names, in its order. Raises OptionError."""
    unknown = [name for name in columns if name not in whole]
    if unknown:
        allowed = f"columns of view {view}: {name_suggestions(unknown, whole)}"
        raise OptionError("columns", ", ".join(unknown), allowed)
    if len(set(columns)) < len(columns):
        raise OptionError("columns", ", ".join(columns), "each column once")
    return columns
