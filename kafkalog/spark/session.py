"""A Spark session with the project's settings, however the job was started."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.errors import RefusedOptionError
from kafkalog.resources import resource
from kafkalog.spark.class_archive import archive_options, archived_classes
from kafkalog.spark.frames import register
from kafkalog.spark.interrupts import end_at_interrupt, interrupt_postponed
from kafkalog.spark.jvm_output import without_start_output
from kafkalog.spark.packing import write_zip
from kafkalog.spark.warm_up import warm_up
from kafkalog.spark_versions import (
    EXCLUDES,
    PACKAGES,
    WITH_STREAM_PACKAGES,
    SparkVersion,
    settings_for,
)
from kafkalog.storage.files.unreadable_input import shared_variables

VERSION = SparkVersion.of(pyspark.__version__)
_CHECKPOINTING = "checkpointing." if VERSION[:2] >= WITH_STREAM_PACKAGES else ""
# A task costs a fifth so, with a daemon that bears it. That has to be installed where tasks run: on
# this machine it is (docs/decisions/0006-unix-sockets.md).
_LOCAL = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "kafkalog.spark.worker_daemon",
    # Delta writes the checksum file of a commit by it. The usual one asks a process for each link
    # and each permission, which takes as long as the rest of a commit (docs/decisions/0027).
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"org.apache.spark.sql.execution.streaming.{_CHECKPOINTING}"
        "FileSystemBasedCheckpointFileManager"
    ),
}

# For jobs that end before optimized code has paid for its compilation: neither the JVM's second
# compiler nor Spark's own code for each stage (docs/decisions/0044).
_LESS_COMPILED = {"spark.sql.codegen.wholeStage": "false"}
_LESS_COMPILED_JAVA = "-XX:TieredStopAtLevel=1"


class Wanted(NamedTuple):
    """What a session has the jars of."""

    delta: bool = False
    avro: bool = False

    @property
    def named(self) -> str:
        """Whose jars they are, for the line that says they are fetched."""
        names = ["Delta's"] * self.delta + ["Avro's"] * self.avro
        return f"{' and '.join(names) or 'the'} jars"


_WAREHOUSE = "spark.sql.warehouse.dir"
_CATALOG, _SESSION_CATALOG = "spark.sql.catalogImplementation", "spark_catalog"
# Of temporary directories of jobs.
_OWN = "kafkalog-"
_PROGRESS = "spark.ui.showConsoleProgress"
_USUAL_CORES = 16
# Limits of a table in a notebook, in rows and in characters of a cell: what `described` returns for
# the widest table, and the longest comment, are shown whole.
_SHOWN_ROWS = 60
_CELL_CHARACTERS = 600


def default_settings() -> dict[str, str]:
    """Return the settings of a session of the installed Spark: those in conf/spark-defaults.conf,
    with Delta's jar for that Spark, and without Delta where none takes it."""
    return settings_for(VERSION, with_delta=VERSION.delta_package is not None)


@contextmanager
def job_session(
    app_name: str,
    *,
    with_delta: bool,
    with_avro: bool = False,
    compiles_less: bool = False,
    has_own_progress: bool = False,
) -> Iterator[SparkSession]:
    """The session of a job, with format("kafkalog") registered; stopped in the end if it is new.
    With `with_delta` and `with_avro`, a session that starts here fetches their jars, once. With
    `compiles_less`, the JVM of a session on this machine makes code that is ready earlier and
    runs slower. Spark shows no progress bar where the job has its own.

    Settings given on the command line or in a properties file win over the project's.
    """
    with ExitStack() as ending:
        is_new = SparkSession.getActiveSession() is None
        # Spark makes a directory for tables by names, in the current one if it is given none.
        warehouse = ending.enter_context(TemporaryDirectory(prefix=_OWN))
        own = {_WAREHOUSE: Path(warehouse).as_uri()}
        if has_own_progress:
            own[_PROGRESS] = "false"
        java_options = ""
        is_started_here = is_new and is_on_this_machine()
        if is_started_here:
            java_options = _class_archive(ending)
            if compiles_less:
                own |= _LESS_COMPILED
                java_options += f" {_LESS_COMPILED_JAVA}"
        wanted = Wanted(delta=with_delta, avro=with_avro)
        spark = _session(app_name, wanted, own=own, java_options=java_options)
        if is_new:
            ending.callback(spark.stop)
            end_at_interrupt()
        if is_remote():
            _bring_package(spark)
        else:
            # A JVM that was there before, such as spark-submit's, has them not in its environment.
            spark.sparkContext.environment.update(shared_variables())
            if is_started_here and parallelism(spark) > 1:
                ending.enter_context(warm_up(spark, Path(warehouse), with_delta=with_delta))
        register(spark)
        yield spark


def _class_archive(ending: ExitStack) -> str:
    """Return the options of a JVM that starts from the archive of classes, or that writes it."""
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    if "-Xshare" in given or "-XX:SharedArchiveFile" in given:
        return ""
    options = archive_options()
    return ending.enter_context(archived_classes()) if options is None else options


def notebook_session(app_name: str = "kafkalog notebook") -> SparkSession:
    """Return the session of a notebook: a job's, with Delta, and DataFrames that show themselves as
    tables at the end of a cell. It is left running, and talks to its workers by TCP: Spark ends
    those that were idle for a minute, and by TCP all end quietly, whoever made them."""
    wanted = Wanted(delta=VERSION.delta_package is not None)
    spark = _session(app_name, wanted, local={})
    register(spark)
    spark.conf.set("spark.sql.repl.eagerEval.enabled", True)
    spark.conf.set("spark.sql.repl.eagerEval.maxNumRows", _SHOWN_ROWS)
    spark.conf.set("spark.sql.repl.eagerEval.truncate", _CELL_CHARACTERS)
    return spark


def refuse_forgotten_table(spark: SparkSession, table: str) -> None:
    """Raise RefusedOptionError for a table by a name that only a job's own session would know: its
    catalog is in memory, its directory of tables a temporary one. Rule: docs/ingest.md F1345."""
    catalog = table.split(".")[0] if table.count(".") > 1 else spark.catalog.currentCatalog()
    is_kept = spark.conf.get(_CATALOG, "in-memory") != "in-memory"
    directory = Path(urlsplit(spark.conf.get(_WAREHOUSE) or "").path)
    is_temporary = str(directory.parent) == gettempdir() and directory.name.startswith(_OWN)
    if catalog == _SESSION_CATALOG and is_temporary and not is_kept:
        reason = (
            f"the session's catalog would forget {table}, and its rows, at the end of the job: "
            "leave --table out for a table in --output-dir, or name one of a catalog that Spark's "
            "configuration has (such as spark.sql.catalogImplementation=hive)"
        )
        raise RefusedOptionError("--table", reason)


def is_on_this_machine() -> bool:
    """Return whether a session that this process starts runs here, so that its files are this
    machine's; of one that spark-submit starts that is not known."""
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    is_elsewhere = {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys()
    return not is_elsewhere and ("--master" not in given or "--master local" in given)


def parallelism(spark: SparkSession) -> int:
    """Return how many tasks run at once; a guess with Spark Connect, whose clients cannot know."""
    return _USUAL_CORES if is_remote() else int(spark.sparkContext.defaultParallelism)


def _bring_package(spark: SparkSession) -> None:
    """Give a Connect server the package: it has the libraries, and gets the source by reference."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kafkalog.zip"
        write_zip(path)
        spark.addArtifacts(str(path), pyfile=True)


def _session(
    app_name: str,
    wanted: Wanted,
    *,
    local: Mapping[str, str] = _LOCAL,
    own: Mapping[str, str] = MappingProxyType({}),
    java_options: str = "",
) -> SparkSession:
    """Return a session with settings for sessions on one machine, and with others for all that this
    process starts."""
    # The driver plans reads in a Python of its own, which is not sys.executable by itself.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        for key, value in own.items():
            if not _is_submitted(key):
                builder = builder.config(key, value)
    elif "SPARK_REMOTE" not in os.environ:
        given = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
        machine = local if is_on_this_machine() else {}
        builder = builder.config(_PROGRESS, str(sys.stderr.isatty()).lower())
        for key, value in {**_wanted_settings(wanted, given), **machine, **own}.items():
            if not _is_given(key, given):
                builder = builder.config(key, value)
        if "--master" not in given:
            builder = builder.master("local[*]")
        if not _is_given("spark.driver.extraJavaOptions", given):
            options = f"{_quiet_logging()} {java_options}"
            builder = builder.config("spark.driver.extraJavaOptions", options)
        with interrupt_postponed(), without_start_output(f"fetching {wanted.named}, once"):
            return builder.getOrCreate()
    with interrupt_postponed():
        return builder.getOrCreate()


def _wanted_settings(wanted: Wanted, given: str) -> dict[str, str]:
    """Return the project's settings. Raises OptionError where Delta's jar is not known."""
    if wanted.delta and not _is_given(PACKAGES, given):
        VERSION.refuse_delta()
    # With Delta's jar from elsewhere, such as of a newer Delta.
    return settings_for(VERSION, with_delta=wanted.delta, with_avro=wanted.avro)


def _quiet_logging() -> str:
    with as_file(resource("conf", "log4j2.properties")) as path:
        return f"-Dlog4j2.configurationFile={path}"


def _is_submitted(key: str) -> bool:
    """Return whether spark-submit was given a setting, by an argument or in a properties file."""
    SparkContext._ensure_initialized()
    return SparkConf().contains(key)


def _is_given(key: str, submit_arguments: str) -> bool:
    if key in (PACKAGES, EXCLUDES):
        return "--jars" in submit_arguments or "--packages" in submit_arguments
    return key in submit_arguments
