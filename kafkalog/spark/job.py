"""What all jobs have in common: arguments, exit codes, and what they say on the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from enum import IntEnum

from pyspark.errors import PySparkException

from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.spark.options import Mode
from kafkalog.spark.tables import FORMATS
from kafkalog.storage.log_dir import find_partitions, input_paths

_EPILOG = """\
A LOG_DIR is a broker's log directory, a partition directory, a .log file, or a glob of these.
Input files are only ever read.

exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments; 3 unreadable input
"""


class ExitCode(IntEnum):
    """What a job's exit code means."""

    DONE = 0
    FINDINGS = 1
    WRONG_ARGUMENTS = 2
    UNREADABLE_INPUT = 3


def job_parser(name: str, description: str, example: str) -> argparse.ArgumentParser:
    """The arguments that every job takes."""
    parser = argparse.ArgumentParser(
        prog=f"jobs/{name}.py",
        description=description,
        epilog=f"example:\n  python jobs/{name}.py {example}\n\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log_dirs", metavar="LOG_DIR", nargs="+", help="what to read, see below")
    parser.add_argument(
        "--output", metavar="DIR", required=True, help="where the result tables are written"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="delta",
        help="format of the tables; delta keeps rows of other inputs, parquet and json need no jar "
        "and replace the whole table (default: delta)",
    )
    parser.add_argument(
        "--show", metavar="N", type=int, default=20, help="rows to show here (default: 20)"
    )
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        default=Mode.PERMISSIVE.value,
        help="what to do about damage: FAILFAST stops at it, PERMISSIVE reads what is sound and "
        "reports the rest, DROPMALFORMED reads what is sound (default: PERMISSIVE)",
    )
    parser.add_argument(
        "--fail-on-findings", action="store_true", help="exit with 1 if anything was found"
    )
    return parser


def announced_inputs(args: argparse.Namespace) -> list[str]:
    """The paths to read, globs resolved; says on stderr how much there is in them.

    Raises LogDirError before a session is started for what cannot be read.
    """
    logs = find_partitions(args.log_dirs, strict=args.mode == Mode.FAILFAST.value)
    segments = [segment for log in logs for segment in log.segments]
    size = sum(segment.size for segment in segments)
    print(
        f"reading {counted(len(segments), 'segment')} of {counted(len(logs), 'partition')}, "
        f"{counted(size, 'byte')}, to the end of every file",
        file=sys.stderr,
    )
    return [path for log_dir in args.log_dirs for path in input_paths(log_dir)]


def run_job(run: Callable[[argparse.Namespace], ExitCode], args: argparse.Namespace) -> int:
    """Run a job's body; errors that a user can mend become a line on stderr and an exit code."""
    try:
        return run(args)
    except OptionError as error:
        return _failed(str(error), ExitCode.WRONG_ARGUMENTS)
    except (KafkaLogError, OSError) as error:
        return _failed(str(error), ExitCode.UNREADABLE_INPUT)
    except PySparkException as error:
        kind, message = _last_words(error)
        is_option = kind == OptionError.__name__
        return _failed(
            message, ExitCode.WRONG_ARGUMENTS if is_option else ExitCode.UNREADABLE_INPUT
        )


def _failed(message: str, code: ExitCode) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def _last_words(error: PySparkException) -> tuple[str, str]:
    """The error that a Python worker raised, without the way that it took through Spark."""
    prefix = "kafkalog.errors."
    lines = [line for line in str(error).splitlines() if line.startswith(prefix)]
    if not lines:
        return type(error).__name__, str(error)
    kind, _, message = lines[-1].removeprefix(prefix).partition(": ")
    return kind, message


def counted(count: int, noun: str) -> str:
    """A number and its noun, for sentences."""
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{count:,} {noun if count == 1 else plural}"
