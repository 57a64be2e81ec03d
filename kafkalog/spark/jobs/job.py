"""What all jobs have in common: arguments, exit codes, and what they say on the terminal."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from typing import NamedTuple, TextIO

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafkalog.errors import KafkaLogError, OptionError, OutOfMemoryError
from kafkalog.exit_codes import INTERRUPTED, StoppedError, output_closed, stopped_by_exceptions
from kafkalog.exit_codes import ExitCode as ExitCode
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.spark.session import is_on_this_machine
from kafkalog.spark.spark_errors import last_words
from kafkalog.spark.tables import SAVED_FORMATS
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.output_files import refuse_unwritable
from kafkalog.storage.files.unreadable_input import noted_unreadable_by_all
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.log_dir import find_partitions, input_entries
from kafkalog.storage.log_dir.other_entries import absent_lines
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables
from kafkalog.storage.log_dir.topic_configs import SERVER_PROPERTIES, TOPIC_CONFIG
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.config_files import topic_configs
from kafkalog.views.options.options import Mode
from kafkalog.words import TIMES_ALLOWED, given_time_ms, printable_lines
from kafkalog.words import counted as counted
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs

_EPILOG = """\
Input files are only ever read.

exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments; 3 some or all of
the input cannot be read: stderr names it, and the rest is in the tables
"""


class InputArgument(NamedTuple):
    """What a job reads: the name of the argument, and what one is."""

    name: str
    metavar: str
    meaning: str


LOG_DIRS = InputArgument(
    "log_dirs",
    "LOG_DIR",
    "A LOG_DIR is a broker's log directory, a partition directory, a .log file, or a glob of "
    "these;\na path, or a URI such as s3://bucket/path with credentials in the environment.\n",
)
ZOOKEEPER_DIRS = InputArgument(
    "zookeeper_dirs",
    "ZOOKEEPER_DIR",
    "A ZOOKEEPER_DIR is a server's dataDir, its folder version-2, or a glob of these; dataDir and\n"
    "dataLogDir are given together. Of several members of an ensemble the newest counts.\n",
)


def job_parser(
    name: str,
    description: str,
    example: str,
    *,
    mode: Mode = Mode.PERMISSIVE,
    inputs: InputArgument = LOG_DIRS,
    formats: Sequence[str] = SAVED_FORMATS,
    output: str | None = None,
) -> argparse.ArgumentParser:
    """The arguments that every job takes, `mode` and `formats` being its own default and choice; of
    a job that writes no tables `output` says what it writes."""
    command = _command(name)
    example = example.replace(_script(name), command)
    parser = argparse.ArgumentParser(
        prog=command.removeprefix("python "),
        description=description,
        epilog=f"example:\n  {command} {example}\n\n{inputs.meaning}{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        inputs.name, metavar=inputs.metavar, nargs="+", help="what to read, see below"
    )
    written = output or "the result tables are"
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=output_path if output is None else local_path,
        required=True,
        help=f"where {written} written",
    )
    if output is None:
        _add_table_arguments(parser, formats)
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        default=mode.value,
        help="what to do about damage: FAILFAST stops at it, PERMISSIVE reads what is sound and "
        f"reports the rest, DROPMALFORMED reads what is sound (default: {mode.value})",
    )
    parser.add_argument(
        "--fail-on-findings", action="store_true", help="exit with 1 if anything was found"
    )
    return parser


def output_path(text: str) -> str:
    """A path to write to, from the root on; a URI as it is. Delta takes some relative paths for
    names in a catalog."""
    _refuse_empty(text)
    is_uri = is_remote(text) or text.startswith("file:")
    return text if is_uri else os.path.abspath(text)


def local_path(text: str) -> str:
    """A path to write to by other means than Spark's, from the root on."""
    _refuse_empty(text)
    if is_remote(text):
        raise argparse.ArgumentTypeError(f"{text} is a URI: give a directory of this machine")
    return absolute_path(text)


def _refuse_empty(path: str) -> None:
    if not path:
        raise argparse.ArgumentTypeError("got an empty path, such as of a variable that is not set")


def count(text: str) -> int:
    """A whole number from 0 on."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _add_table_arguments(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    meaning = "format of the tables"
    if len(formats) > 1:
        meaning += (
            "; delta keeps rows of other inputs, parquet and json need no jar and replace the "
            "whole table"
        )
    parser.add_argument(
        "--format", choices=formats, default="delta", help=f"{meaning} (default: delta)"
    )
    parser.add_argument(
        "--show", metavar="N", type=count, default=20, help="rows to show here (default: 20)"
    )


def _command(name: str) -> str:
    """How the job was started, and can be again."""
    started = f"kafkalog job {name}"
    return started if sys.argv[0] == started else _script(name)


def _script(name: str) -> str:
    return f"python jobs/{name}.py"


def argument_time_ms(text: str) -> int:
    """A time on the command line, in milliseconds: such a number, or ISO 8601, UTC by default.
    Where it looks like seconds, stderr says so."""
    try:
        return given_time_ms(text, partial(print, file=sys.stderr))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_time_argument(
    parser: argparse.ArgumentParser,
    name: str,
    meaning: str,
    default_ms: int | None,
    default_words: str = "now",
) -> None:
    """An argument that is a time, and what it is by default, also in words."""
    parser.add_argument(
        name,
        metavar="TIME",
        type=argument_time_ms,
        default=default_ms,
        help=f"{meaning}: such as 2026-11-21T12:00:00Z, {TIMES_ALLOWED} (default: {default_words})",
    )


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what a cluster's settings are."""
    parser.add_argument(
        "--server-properties",
        metavar="FILE",
        help="the broker's settings, as it is started with; what they do not name is Kafka's "
        "default then",
    )
    parser.add_argument(
        "--topic-config",
        metavar="FILE",
        help='settings that topics have of their own: {"orders": {"retention.ms": "3600000"}}',
    )


def add_index_interval_argument(parser: argparse.ArgumentParser, meaning: str) -> None:
    """The argument for `index.interval.bytes`."""
    parser.add_argument(
        "--index-interval-bytes",
        metavar="N",
        type=count,
        default=INDEX_INTERVAL_BYTES,
        help=f"index.interval.bytes of {meaning} (default: {INDEX_INTERVAL_BYTES})",
    )


def config_options(args: argparse.Namespace) -> dict[str, str]:
    """The same as options of the source. Raises OptionError, as the source does, for a file that is
    not there or of another form: asked for before a session is started, that is told at once."""
    topic_configs(args.topic_config, args.server_properties)
    files = {SERVER_PROPERTIES: args.server_properties, TOPIC_CONFIG: args.topic_config}
    return {option: path for option, path in files.items() if path is not None}


def exit_code(args: argparse.Namespace, *, has_findings: bool) -> ExitCode:
    """The exit code of a job that has done its work."""
    return ExitCode.FINDINGS if args.fail_on_findings and has_findings else ExitCode.DONE


def announced_inputs(args: argparse.Namespace) -> list[str]:
    """The paths to read, globs resolved; the rest as `announced_logs` does."""
    return announced_logs(args)[0]


def announced_logs(args: argparse.Namespace) -> tuple[list[str], list[PartitionLog]]:
    """The paths to read, globs resolved, and the logs under them; says on stderr how much there is.

    Raises, before a session is started, LogDirError for what cannot be read, and OptionError for
    an output in what is read.
    """
    logs = find_partitions(args.log_dirs, strict=args.mode == Mode.FAILFAST.value)
    inputs = [entry for log_dir in args.log_dirs for entry in input_entries(log_dir)]
    files = [entry.path for entry in inputs if not entry.is_directory]
    _refuse_output(args.output, [*directories_read(inputs, logs), *files])
    segments = [segment for log in logs for segment in log.segments]
    size = sum(segment.size for segment in segments)
    print(
        f"found {counted(len(segments), 'segment')} of {counted(len(logs), 'partition')}, "
        f"{counted(size, 'byte')}",
        file=sys.stderr,
    )
    return [entry.path for entry in inputs], logs


def tell_absent(inputs: Sequence[str], logs: Sequence[PartitionLog]) -> None:
    """Say which partitions only checkpoints know: no verdict about what was read speaks of them."""
    for line in absent_lines(inputs, logs):
        print(line)


def announced_data_dirs(args: argparse.Namespace) -> list[DataDir]:
    """The files of ZooKeeper's servers; says on stderr how many there are.

    Raises, before a session is started, LogDirError for what holds none, and OptionError for an
    output in what is read.
    """
    found = find_data_dirs(args.zookeeper_dirs)
    paths = (path for pattern in args.zookeeper_dirs for path in matching_paths(pattern))
    _refuse_output(args.output, paths)
    files = sum(len(data_dir.snapshots) + len(data_dir.logs) for data_dir in found)
    print(f"found {counted(files, 'file')} of {counted(len(found), 'server')}", file=sys.stderr)
    return found


class _ForPeople(io.TextIOBase):
    """A stream to which nothing is written that a terminal would act on: tables have names of
    files, topics and groups in them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable_lines(text))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _refuse_output(output: str, directories: Iterable[str]) -> None:
    """Raise OptionError for an output in what is read, or on this machine where one may not write.
    A path on a cluster is looked at by Spark alone."""
    refuse_tables(output, directories)
    is_elsewhere = is_remote(output) or "HADOOP_CONF_DIR" in os.environ
    if is_on_this_machine() and not is_elsewhere:
        refuse_unwritable("--output", absolute_path(output))


def run_job(run: Callable[[argparse.Namespace], ExitCode], args: argparse.Namespace) -> int:
    """Run a job's body; errors that a user can mend become a line on stderr and an exit code."""
    with (
        redirect_stdout(_ForPeople(sys.stdout)),
        redirect_stderr(_ForPeople(sys.stderr)),
    ):
        return _run(run, args)


def _run(run: Callable[[argparse.Namespace], ExitCode], args: argparse.Namespace) -> int:
    try:
        with noted_unreadable_by_all() as noted, stopped_by_exceptions():
            code = run(args)
            for line in noted.lines():
                print(line, file=sys.stderr)
            sys.stdout.flush()
            return noted.exit_code(code)
    except StoppedError as stopped:
        return stopped.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return output_closed()
    except OptionError as error:
        return _failed(str(error), ExitCode.WRONG_ARGUMENTS)
    except (KafkaLogError, OSError) as error:
        return _failed(str(error), ExitCode.UNREADABLE_INPUT)
    except MemoryError:
        return _failed(str(OutOfMemoryError()), ExitCode.UNREADABLE_INPUT)
    except (PySparkException, Py4JError) as error:
        kind, message = last_words(error)
        is_option = kind == OptionError.__name__
        return _failed(
            message, ExitCode.WRONG_ARGUMENTS if is_option else ExitCode.UNREADABLE_INPUT
        )


def _failed(message: str, code: ExitCode) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
