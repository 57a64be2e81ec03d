"""The command `kafkalog`: its commands, and how all of them end.

Help and completion must answer at once, so this file imports nothing slow. A command's file is
imported when the command is called, and imports what reads logs inside its function.
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
from kafkalog.columns.jit import prefer_stored
from kafkalog.command_line.short_help import HelpedCommand
from kafkalog.command_line.terminal import print_error, print_note
from kafkalog.command_line.without_pandas import keep_pandas_away
from kafkalog.errors import KafkaLogError, OptionError, OutOfMemoryError
from kafkalog.exit_codes import INTERRUPTED, ExitCode, StoppedError, output_closed
from kafkalog.extras import missing_extras_named
from kafkalog.job_files import job_titles
from kafkalog.storage.files.unreadable_input import noted_unreadable
from kafkalog.views.options.contradictions import refuse_contradictions
from kafkalog.words import name_suggestions

# Each has a module in kafkalog.command_line.commands, with "_" for "-" and " ", and a function in
# it, some in one of its folders.
COMMANDS = {
    "groups": "Show consumer groups, their lag, and since when they lag.",
    "lag-history": "Show the lag and the status of groups over time, and their generations.",
    "ls": "List topics, partitions or segments: sizes, offsets, times, codecs.",
    "get-offsets": "Print offsets of partitions, as kafka-get-offsets does.",
    "job": "Run a Spark job, or print the arguments that spark-submit needs for it.",
    "check": "Check checksums, framing, offsets, records and indexes.",
    "report": "Write one HTML page with plots about a cluster.",
    "find": "Find records by key or value, and show what was searched.",
    "export": "Write the records of topics to tables of Parquet files, each exactly once.",
    "metadata": "Show a cluster's topics, configs, ACLs and the like as of any moment.",
    "quorum": "Compare copies of the metadata: voters, majority, divergence.",
    "replicas": "Show what is lost with each replica as the leader of its partition.",
    "tier": "Compare tiered storage with __remote_log_metadata and the local logs.",
    "quorum rebuild": "Write a new metadata directory after the majority was lost.",
    "dump": "Show the batches or records of logs, and the contents of the files beside them.",
    "recover": "Show what a broker would do to its log directories at its next start.",
    "serve": "Serve log directories to Kafka's clients, read-only.",
    "diff": "Show what changed between two copies of log directories.",
    "free": "Show what may be deleted to free space on a disk, least harmful first.",
    "positions": "Compare positions that Spark, tables, Connect and MirrorMaker keep with logs.",
    "connect": "Show the connectors of Kafka Connect, their tasks and source offsets.",
    "mirror": "Show what MirrorMaker has copied, its checkpoints and its heartbeats.",
    "streams": "Show how far applications of Kafka Streams are, in offsets and in time.",
    "ksql": "Show the streams, tables and queries of ksqlDB, by its command topic.",
    "keys": "Show how many keys topics have, which are heavy, and which records repeat others.",
    "schemas": "Show which schema ids the records of each topic name.",
    "retention": "Show which segments a broker's retention deletes, when, and why.",
    "compaction": "Check whether cleaned logs keep the cleaner's guarantees.",
    "erase": "Write log directories without a person's records, and a proof of it.",
    "restore": "Write a cluster that boots, as of one moment, from copies of brokers' disks.",
    "salvage": "Write a new log directory with everything that is intact in a damaged one.",
    "undelete": "Restore what a broker has deleted but not yet removed.",
    "optimize": "Write the small files of a table again as large ones.",
    "vacuum": "Remove files in a table's directory that are not part of the table.",
    "audit-consumers": "Compare what old consumers have in ZooKeeper with what they are assigned.",
    "migrate-offsets": "Compare groups' offsets in ZooKeeper and Kafka, and write what moves them.",
    "sql": "Answer queries in SQL over records, lag, transactions, segments and the rest.",
    "state": "Show or write the latest committed value of each key.",
    "status": "Compare a table with the logs: what each partition has, what waits, and why.",
    "completion": "Print the script that completes kafkalog's commands in a shell.",
    "txns": "List transactions: open, hanging, and what they block.",
}
_FOLDERS = {
    **dict.fromkeys(
        ("metadata", "positions", "quorum", "quorum rebuild", "replicas", "tier"), "cluster."
    ),
    **dict.fromkeys(("diff", "erase", "free", "restore", "salvage", "undelete"), "disks."),
    **dict.fromkeys(("connect", "keys", "ksql", "mirror", "schemas", "streams"), "topics."),
    **dict.fromkeys(("export", "optimize", "status", "vacuum"), "tables."),
}

# What other tools call them.
_OTHER_NAMES = {
    "brokers": "metadata --brokers",
    "cat": "dump",
    "cleaning": "compaction",
    "compare": "diff",
    "configs": "metadata --configs",
    "connectors": "connect",
    "consume": "dump --deep",
    "consumer-groups": "groups",
    "delete": "free",
    "delete-records": "erase",
    "describe": "metadata, or groups for consumer groups",
    "duplicates": "keys",
    "ksqldb": "ksql",
    "lag": "groups",
    "list": "ls",
    "mirrormaker": "mirror",
    "offsets": "get-offsets",
    "forget": "erase",
    "partitions": "ls --by partition",
    "plan-retention": "retention",
    "query": "sql",
    "segments": "ls --by segment",
    "topics": "ls",
    "transactions": "txns",
    "validate": "check",
    "verify": "check",
    "verify-compaction": "compaction",
}

_EPILOG = """\
\b
Examples:
  kafkalog ls /var/lib/kafka/data
  kafkalog check /var/lib/kafka/data
  kafkalog groups /var/lib/kafka/data --lagging
  kafkalog dump --deep --limit 5 /var/lib/kafka/data/orders-0

\b
Input files are only read, never changed. `kafkalog COMMAND --help` shows
examples of a command and its options, `kafkalog COMMAND --help-all` explains
them.

\b
Exit codes: 0 done; 1 findings; 2 wrong arguments; 3 some or all of the input
cannot be read: stderr names it, and the output has the rest; 130 ended by
Ctrl-C; 143 by SIGTERM; 129 by the end of its terminal; 141 by the end of the
program that reads the output.
"""

# From glibc's malloc.h.
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
        function = name.replace("-", "_").replace(" ", "_")
        folder = _FOLDERS.get(name, "")
        module = import_module(f"kafkalog.command_line.commands.{folder}{function}")
        return HelpedCommand.of(getattr(module, function))

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, two_words = arguments[0], " ".join(arguments[:2])
        if two_words in COMMANDS and len(arguments) > 1:
            name, arguments = two_words, [two_words, *arguments[2:]]
        if not (name in COMMANDS or name.startswith("-") or context.resilient_parsing):
            other = _OTHER_NAMES.get(name) or (f"job {name}" if name in job_titles() else None)
            hint = f"use kafkalog {other}" if other else name_suggestions([name], COMMANDS)
            context.fail(f"No such command {name!r}: {hint}")
        found = super().resolve_command(context, arguments)
        if found[1] is not None and not context.resilient_parsing:
            refuse_contradictions(found[1], found[2], context)
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(context)])

    def invoke(self, context: click.Context) -> int:
        """Run the command. An error that a user can fix becomes a line on stderr, and so does each
        position of the input that could not be read."""
        with noted_unreadable() as noted:
            code = self._ended(context) or ExitCode.DONE
            for line in noted.lines():
                print_note(line)
            context.exit(noted.exit_code(code))

    def _ended(self, context: click.Context) -> int:
        try:
            with missing_extras_named():
                code: int = super().invoke(context)
            sys.stdout.flush()
        except OptionError as error:
            code = print_error(self._named_as_given(error, context), ExitCode.WRONG_ARGUMENTS)
        except click.UsageError as error:
            from kafkalog.views.options.option_names import usage_error_text

            code = print_error(usage_error_text(error), ExitCode.WRONG_ARGUMENTS)
        except BrokenPipeError:
            code = output_closed()
        except StoppedError as stopped:
            code = stopped.exit_code
        except KeyboardInterrupt:
            code = INTERRUPTED
        except FileNotFoundError as error:
            # Commands go on without most files: this is for the others.
            said = f"{error.filename}: no such file, or it was deleted while it was read"
            code = print_error(said if error.filename else str(error), ExitCode.UNREADABLE_INPUT)
        except (KafkaLogError, OSError) as error:
            code = print_error(str(error), ExitCode.UNREADABLE_INPUT)
        except EOFError as error:
            # Where a disk is full, Python writes part of a compiled module and loads that later.
            said = f"a compiled module in a __pycache__ directory is cut off ({error}): a full "
            said += "disk leaves such files; delete the __pycache__ directories of kafkalog"
            code = print_error(said, ExitCode.UNREADABLE_INPUT)
        except MemoryError:
            code = print_error(str(OutOfMemoryError()), ExitCode.UNREADABLE_INPUT)
        return code

    def _named_as_given(self, error: OptionError, context: click.Context) -> str:
        from kafkalog.views.options.option_names import named_as_given

        command = self.get_command(context, context.invoked_subcommand or "")
        return str(error) if command is None else named_as_given(error, command)


@click.command(
    cls=LazyCommands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kafkalog", message="%(prog)s %(version)s")
def kafkalog() -> None:
    """Read Kafka's log files without a broker, Spark or a JVM."""


def main() -> None:
    """Run the command with the process's arguments, and end the process with its exit code."""
    # Several processes share the cores; threads of a linear algebra library would only add load.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command has few short-lived objects: modules, and rows in columns.
    gc.set_threshold(200_000)
    _keep_memory()
    keep_pandas_away()
    prefer_stored(_say_compiling)
    # File names can be bytes that are not text.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        kafkalog(prog_name="kafkalog")
    except SystemExit as ended:
        if "pyspark" not in sys.modules and isinstance(ended.code, int):
            _end(ended.code)
        raise


def _say_compiling() -> None:
    if sys.stderr.isatty():
        # In place of a progress bar that has just begun.
        click.echo("\r\x1b[Kcompiling for this processor, once: some seconds", err=True)


def _keep_memory() -> None:
    """Keep the memory of arrays of some MiB, which each part of a file needs again: glibc would
    return it, and the kernel would clear it for the next part (mallopt(3)). Larger arrays, of
    hostile or very large batches, are returned. Other C libraries have no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            mallopt(parameter, _KEPT_BYTES)


def _end(code: int) -> None:
    """End the process without finalizing its modules, which takes longer than reading a small log.
    Exit functions run; a process with Spark has more to do and does not end this way."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = output_closed()
    os._exit(code)
