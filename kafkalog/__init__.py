"""Kafka's log files in bulk and without a broker: as Spark DataFrames, Arrow and SQL.

Every name that users need is here, in `kafkalog.testing` (log directories for tests) or in
`kafkalog.zookeeper` (what old consumers compute from ZooKeeper).

- read on Spark: read, register, job_session, notebook_session, described, readable
- read as Arrow and in SQL: scan, Scan, sql
- tables, jobs, servers: export, run_job, serve, write
- lag of groups on Spark: consumer_lag, lag_history, with_lag, log_places
- logs in Python: find_partitions, LogReader, LogWriter, InputFile, earliest_offset, latest_offset,
  log_end_offset, rebuild_side_files
- messages in Python: read_internal_record, read_control_record, read_assignment,
  read_subscription, read_schema_prefix, write_record_key, write_record_value, MessageSetSend,
  MultiMessageSetSend and their functions read_... and write_...
- errors: KafkaLogError is the base of all

Most are imported when they are first used, because they import pyspark or pyarrow.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalog.errors import (
        CorruptDataError,
        DataLossError,
        KafkaLogError,
        LogDirError,
        OffsetOutOfRangeError,
        OptionError,
        SchemaError,
    )
    from kafkalog.format.fetch_response import (
        MessageSetSend,
        MultiMessageSetSend,
        read_message_set_send,
        read_multi_message_set_send,
        write_message_set_send,
        write_multi_message_set_send,
    )
    from kafkalog.inspection.logs.log_offsets import earliest_offset, latest_offset, log_end_offset
    from kafkalog.job_files import run_job
    from kafkalog.messages.confluent_wire import read_schema_prefix
    from kafkalog.messages.consumer_protocol import read_assignment, read_subscription
    from kafkalog.messages.internal_records import read_control_record, read_internal_record
    from kafkalog.messages.record_writer import write_record_key, write_record_value
    from kafkalog.server.network.serving import serve
    from kafkalog.spark.frames import read, register, write
    from kafkalog.spark.jobs.lag_frames import consumer_lag, lag_history, log_places, with_lag
    from kafkalog.spark.lake.export import export
    from kafkalog.spark.readable import readable
    from kafkalog.spark.session import job_session, notebook_session
    from kafkalog.spark.tables import described
    from kafkalog.storage.files.files import InputFile
    from kafkalog.storage.log_dir.log_dir import find_partitions
    from kafkalog.storage.reading.log_reader import LogReader
    from kafkalog.storage.recovery.side_files import rebuild_side_files
    from kafkalog.storage.writing.log_writer import LogWriter
    from kafkalog.tables.database import sql
    from kafkalog.tables.scan import Scan, scan

__version__ = "0.1.0"

__all__ = [
    "CorruptDataError",
    "DataLossError",
    "InputFile",
    "KafkaLogError",
    "LogDirError",
    "LogReader",
    "LogWriter",
    "MessageSetSend",
    "MultiMessageSetSend",
    "OffsetOutOfRangeError",
    "OptionError",
    "Scan",
    "SchemaError",
    "consumer_lag",
    "described",
    "earliest_offset",
    "export",
    "find_partitions",
    "job_session",
    "lag_history",
    "latest_offset",
    "log_end_offset",
    "log_places",
    "notebook_session",
    "read",
    "read_assignment",
    "read_control_record",
    "read_internal_record",
    "read_message_set_send",
    "read_multi_message_set_send",
    "read_schema_prefix",
    "read_subscription",
    "readable",
    "rebuild_side_files",
    "register",
    "run_job",
    "scan",
    "serve",
    "sql",
    "with_lag",
    "write",
    "write_message_set_send",
    "write_multi_message_set_send",
    "write_record_key",
    "write_record_value",
]

# Modules below kafkalog, and the public names that each defines.
_PUBLIC_NAMES = {
    "errors": (
        *("CorruptDataError", "DataLossError", "KafkaLogError", "LogDirError"),
        *("OffsetOutOfRangeError", "OptionError", "SchemaError"),
    ),
    "format.fetch_response": (
        *("MessageSetSend", "MultiMessageSetSend"),
        *("read_message_set_send", "read_multi_message_set_send"),
        *("write_message_set_send", "write_multi_message_set_send"),
    ),
    "inspection.logs.log_offsets": ("earliest_offset", "latest_offset", "log_end_offset"),
    "job_files": ("run_job",),
    "messages.confluent_wire": ("read_schema_prefix",),
    "messages.consumer_protocol": ("read_assignment", "read_subscription"),
    "messages.internal_records": ("read_control_record", "read_internal_record"),
    "messages.record_writer": ("write_record_key", "write_record_value"),
    "server.network.serving": ("serve",),
    "spark.frames": ("read", "register", "write"),
    "spark.jobs.lag_frames": ("consumer_lag", "lag_history", "log_places", "with_lag"),
    "spark.lake.export": ("export",),
    "spark.session": ("job_session", "notebook_session"),
    "spark.tables": ("described",),
    "spark.readable": ("readable",),
    "storage.files.files": ("InputFile",),
    "storage.log_dir.log_dir": ("find_partitions",),
    "storage.reading.log_reader": ("LogReader",),
    "storage.recovery.side_files": ("rebuild_side_files",),
    "storage.writing.log_writer": ("LogWriter",),
    "tables.database": ("sql",),
    "tables.scan": ("Scan", "scan"),
}
_MODULES = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}

if not TYPE_CHECKING:  # mypy would take any name for one that is there

    def __getattr__(name):
        if name not in _MODULES:
            # With these Python's traceback says which name was meant.
            given = {"name": name, "obj": sys.modules[__name__]}
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", **given)
        from kafkalog.arguments import with_known_arguments
        from kafkalog.extras import missing_extras_named

        with missing_extras_named():
            found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = with_known_arguments(found, __name__)
        return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__version__"]
