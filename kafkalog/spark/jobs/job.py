"""What all jobs share on the command line: options, help, errors and exit codes.

Nothing here imports pyspark: help and errors in the arguments need neither Spark nor Java.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any, ClassVar, TextIO

import click

from kafkalog.errors import KafkaLogError, OptionError, OutOfMemoryError
from kafkalog.exit_codes import INTERRUPTED, StoppedError, output_closed, stopped_by_exceptions
from kafkalog.exit_codes import ExitCode as ExitCode
from kafkalog.extras import missing_extras_named
from kafkalog.storage.files.unreadable_input import noted_unreadable_by_all
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.contradictions import refuse_contradictions
from kafkalog.views.options.option_names import (
    first_named_as_given,
    named_as_given,
    usage_error_text,
)
from kafkalog.views.options.options import Mode
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.words import printable_lines

SAVED_FORMATS = ("delta", "parquet", "json")
_EPILOG = """\
\b
Examples:
  {command} {example}

{meaning}
Input files are only ever read.

\b
Exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments;
3 some or all of the input cannot be read: stderr names it, and the rest is in the tables
"""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of every job: `paths` to read, where and how to write, what to do about damage
    and findings. `output_dir` is empty where the tables are in a catalog, or there are none."""

    paths: tuple[str, ...]
    output_dir: str = ""
    mode: str = Mode.PERMISSIVE.value
    fail_on_findings: bool = False
    table_format: str = "delta"
    show: int = 20

    @property
    def is_delta(self) -> bool:
        """Whether the tables are Delta tables."""
        return self.table_format == "delta"

    def exit_code(self, *, has_findings: bool) -> ExitCode:
        """Return the exit code of a job that has done its work."""
        return ExitCode.FINDINGS if self.fail_on_findings and has_findings else ExitCode.DONE


def job_command(
    name: str,
    example: str,
    *,
    mode: Mode | None = Mode.PERMISSIVE,
    meaning: str = shared.PATHS_MEANING,
    formats: Sequence[str] = SAVED_FORMATS,
    page: str | None = None,
    needs_output_dir: bool = True,
    writes_tables: bool = True,
) -> Callable[[Callable[..., ExitCode]], JobCommand]:
    """Make a function a job: it receives JobSettings as `job`, and its own options by their names.

    `mode` and `formats` are the job's default and choice; `page` names the file that a job writes
    instead of tables; `meaning` explains PATH. A job that does not need --output-dir has another
    option that says where its tables are; one that writes no tables has none of these options.
    Without a `mode` a job does the same with damage in all of them.
    """
    options: list[shared.Decorator] = [shared.paths_argument]
    if writes_tables:
        options.append(_output_option(page, is_required=needs_output_dir))
    if writes_tables and page is None:
        options += [_table_format_option(formats), shared.show_option("rows", default=20)]
    if mode is not None:
        options.append(shared.mode_option(mode))
    options.append(shared.fail_on_findings_option(default=False))

    def decorate(function: Callable[..., ExitCode]) -> JobCommand:
        return click.command(
            name,
            cls=JobCommand,
            help=function.__doc__,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
            example=example,
            meaning=meaning,
        )(shared.settings_options(JobSettings, "job", *options)(function))

    return decorate


class JobCommand(click.Command):
    """A job on the command line. Calling it with arguments runs it and returns its exit code."""

    _STARTED_AS: ClassVar[str] = "kafkalog job"

    def __init__(self, *args: Any, example: str, meaning: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._example, self._meaning = example, meaning

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        return run_job(
            lambda: self._invoked(sys.argv[1:] if arguments is None else arguments),
            in_words_of=self,
        )

    def _invoked(self, arguments: Sequence[str]) -> int:
        program = self._started_by().removeprefix("python ")
        try:
            with self.make_context(program, list(arguments)) as context:
                code: int = self.invoke(context)
                return code
        except click.exceptions.Exit as ended:  # after --help
            return ended.exit_code
        except click.UsageError as error:
            return _failed(usage_error_text(error), ExitCode.WRONG_ARGUMENTS)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        refuse_contradictions(self, arguments, context)
        return super().parse_args(context, arguments)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        command = self._started_by()
        example = self._example.replace(self._script(), command)
        self.epilog = _EPILOG.format(command=command, example=example, meaning=self._meaning)
        super().format_epilog(context, formatter)

    def _started_by(self) -> str:
        """Return how the job was started, and can be again."""
        started = f"{self._STARTED_AS} {self.name}"
        return started if sys.argv[:1] == [started] else self._script()

    def _script(self) -> str:
        return f"python jobs/{(self.name or '').replace('-', '_')}.py"


class _OutputPath(GivenPath):
    """A path to write to, made absolute; a URI as it is. Delta takes some relative paths for names
    in a catalog."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        path = str(super().convert(value, param, ctx))
        is_uri = is_remote(path) or path.startswith("file:")
        return path if is_uri else os.path.abspath(path)


class _LocalPath(GivenPath):
    """A path on this machine, made absolute, to write to by other means than Spark's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        path = str(super().convert(value, param, ctx))
        if is_remote(path):
            self.fail(f"{path} is a URI: give a directory of this machine", param, ctx)
        return absolute_path(path)


def _output_option(page: str | None, *, is_required: bool) -> shared.Decorator:
    if page is None:
        meaning = "Directory of the result tables."
        return shared.output_dir_option(meaning, path=_OutputPath(), required=is_required)
    return shared.output_dir_option(f"Directory of {page}.", path=_LocalPath())


def _table_format_option(formats: Sequence[str]) -> shared.Decorator:
    meaning = "Format of the tables"
    if "json" in formats:
        meaning += (
            ": delta keeps rows of other inputs; parquet and json need no jar and replace the "
            "whole table"
        )
    return shared.format_option(formats, f"{meaning}.", default="delta")


class _ForPeople(io.TextIOBase):
    """A stream that escapes what a terminal would act on: tables have names of files, topics and
    groups in them."""

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


def run_job(run: Callable[[], int], in_words_of: click.Command | None = None) -> int:
    """Run a job's body; errors that a user can correct become a line on stderr and an exit code.
    They name options as the command does that is given as `in_words_of`."""
    command = in_words_of or click.Command(None)
    with redirect_stdout(_ForPeople(sys.stdout)), redirect_stderr(_ForPeople(sys.stderr)):
        return ended(lambda: _noted(run), command)


def _noted(run: Callable[[], int]) -> int:
    """Run a job's body, and say at its end what it could not read."""
    with noted_unreadable_by_all() as noted:
        code = run()
        for line in noted.lines():
            print(line, file=sys.stderr)
        sys.stdout.flush()
        return noted.exit_code(code)


def ended(run: Callable[[], int], command: click.Command) -> int:
    """Run a job's body, or one of several parts of it; say what ends it, and return the exit
    code."""
    try:
        with missing_extras_named(), stopped_by_exceptions():
            return run()
    except StoppedError as stopped:
        return stopped.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return output_closed()
    except OptionError as error:
        return _failed(named_as_given(error, command), ExitCode.WRONG_ARGUMENTS)
    except (KafkaLogError, OSError) as error:
        return _failed(str(error), ExitCode.UNREADABLE_INPUT)
    except MemoryError:
        return _failed(str(OutOfMemoryError()), ExitCode.UNREADABLE_INPUT)
    except Exception as error:
        if "pyspark" not in sys.modules:
            raise
        return _failed_in_spark(error, command)


def _failed_in_spark(error: Exception, command: click.Command) -> int:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from kafkalog.spark.spark_errors import last_words

    if not isinstance(error, (PySparkException, Py4JError)):
        raise error
    kind, message = last_words(error)
    if kind == OptionError.__name__:
        return _failed(first_named_as_given(message, command), ExitCode.WRONG_ARGUMENTS)
    return _failed(message, ExitCode.UNREADABLE_INPUT)


def _failed(message: str, code: ExitCode) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
