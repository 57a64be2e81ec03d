"""The command `kafkalog`: its commands, a file each, and how all of them end.

Nothing is imported here that takes long: help and completion answer at once. A command's file is
imported when it is called, and imports what reads logs inside of its function.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import sys
from importlib import import_module

import click

from kafkalog import __version__
from kafkalog.columns.jit.kernel_mode import prefer_stored
from kafkalog.command_line.terminal import tell, tell_error
from kafkalog.errors import ConflictingOptionsError, KafkaLogError, OptionError, OutOfMemoryError
from kafkalog.exit_codes import INTERRUPTED, ExitCode, StoppedError, output_closed
from kafkalog.storage.files.unreadable_input import noted_unreadable
from kafkalog.words import names_that_are_there

# Each is a module in kafkalog.command_line.commands, with "_" for "-", and the function in it.
COMMANDS = {
    "groups": "Tell consumer groups, their lag, and who is behind since when.",
    "ls": "List topics, partitions or segments: sizes, offsets, times, codecs.",
    "get-offsets": "Print offsets of partitions, as kafka-get-offsets does.",
    "job": "Run one of the Spark jobs, or print what spark-submit needs for it.",
    "check": "Check checksums, framing, offsets, records and indexes.",
    "report": "Write one HTML page about a cluster, plots and all (needs Java).",
    "find": "Find records by key or value, or tell what was searched without finding any.",
    "dump": "Show the batches of logs, or the records, and what stands in the files beside.",
    "recover": "Tell what a broker would do to log directories at its next start.",
    "salvage": "Write a new log directory with all that is sound in a damaged one.",
    "undelete": "Bring back what a broker has deleted and not removed yet.",
    "completion": "Print what makes a shell complete kafkalog's commands and options.",
    "txns": "Tell transactions: open, hanging, and what they hold back.",
}

_EPILOG = """\
\b
Input files are only ever read. `kafkalog COMMAND --help` shows examples.

\b
Exit codes: 0 done; 1 findings; 2 wrong arguments; 3 some or all of the input
cannot be read: stderr names it, and the rest is in the output;
130 ended by Ctrl-C; 143 by SIGTERM; 129 by the end of its terminal;
141 nobody reads the output any more.
"""

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 32 * 1024 * 1024


class LazyCommands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        function = name.replace("-", "_")
        module = import_module(f"kafkalog.command_line.commands.{function}")
        command: click.Command = getattr(module, function)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if not (name in COMMANDS or name.startswith("-") or context.resilient_parsing):
            context.fail(f"No such command {name!r}: {names_that_are_there([name], COMMANDS)}")
        found = super().resolve_command(context, arguments)
        if found[1] is not None and not context.resilient_parsing:
            _refuse_contradictions(found[1], found[2], context)
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(context)])

    def invoke(self, context: click.Context) -> int:
        """Run the command; errors that a user can mend become a line on stderr, and so does each
        place of the input that could not be read."""
        with noted_unreadable() as noted:
            code = self._ended(context) or ExitCode.DONE
            for line in noted.lines():
                tell(line)
            context.exit(noted.exit_code(code))

    def _ended(self, context: click.Context) -> int:
        try:
            code: int = super().invoke(context)
            sys.stdout.flush()
        except OptionError as error:
            code = tell_error(str(error), ExitCode.WRONG_ARGUMENTS)
        except BrokenPipeError:
            code = output_closed()
        except StoppedError as stopped:
            code = stopped.exit_code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except (KafkaLogError, OSError) as error:
            code = tell_error(str(error), ExitCode.UNREADABLE_INPUT)
        except MemoryError:
            code = tell_error(str(OutOfMemoryError()), ExitCode.UNREADABLE_INPUT)
        return code


def _refuse_contradictions(
    command: click.Command, arguments: list[str], context: click.Context
) -> None:
    """Raise OptionError where an option that takes one value is given twice, or where two options
    contradict each other: the last one would count, and nothing would say so."""
    parser = command.make_parser(click.Context(command, parent=context))
    try:
        _, _, given = parser.parse_args(list(arguments))
    except click.UsageError:
        return  # click says it better when the command is run
    seen: dict[str | None, click.Option] = {}
    for option in given:
        if not isinstance(option, click.Option) or option.multiple or option.is_bool_flag:
            continue
        before = seen.setdefault(option.name, option)
        if before is not option:
            raise ConflictingOptionsError(option.opts[0], before.opts[0])
        if not option.is_flag and given.count(option) > 1:
            raise OptionError(option.opts[0], "two values", "one")


@click.command(
    cls=LazyCommands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kafkalog", message="%(prog)s %(version)s")
def kafkalog() -> None:
    """Read Kafka's log files: without a broker, without Spark, without a JVM."""


def main() -> None:
    """Run the command with the process's arguments, and end the process with its exit code."""
    # Several processes share the cores; threads of a linear algebra library would only be there.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command has few objects that come and go: modules, and rows in columns.
    gc.set_threshold(200_000)
    _keep_memory()
    prefer_stored()
    # Names of files can be bytes that are no text.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        kafkalog(prog_name="kafkalog")
    except SystemExit as ended:
        if "pyspark" not in sys.modules and isinstance(ended.code, int):
            _end(ended.code)
        raise


def _keep_memory() -> None:
    """Arrays of some MiB come and go with each part of a file: glibc would give the memory of each
    back, and the kernel clear it anew for the next (mallopt(3)). Larger ones, of hostile or very
    large batches, do go back. Other C libraries have no say."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            mallopt(parameter, _KEPT_BYTES)


def _end(code: int) -> None:
    """End the process without taking its modules apart one by one, which takes longer than to read
    a small log. What has to be done at the end is done; Spark would have more to do."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = output_closed()
    os._exit(code)
