"""Kafka's own command-line tools, run as processes of their own with a time limit."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.broker.class_paths import class_path

TOOL_TIMEOUT_SECONDS = 60
_STOP_TIMEOUT_SECONDS = 30
# What servers and tools of Kafka 4 log, to standard output.
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %m (%c)%n%throwable
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
# Servers live for seconds, tools for one or two: a collector and a compiler that start quickly suit
# them.
SHORT_LIFE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
QUICK_START = ("-Xmx256m", *SHORT_LIFE)
_SHOWN_CHARACTERS = 2000


class ToolError(RuntimeError):
    """A tool that failed or did not end in time, with what it said last."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool wrote; no decoding, for it may print records."""

    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output, then standard error."""
        return (self.stdout + self.stderr).decode("utf-8", errors="replace")


def run_tool(
    main_class: str,
    arguments: Sequence[str],
    *,
    jars: str = "tools",
    kafka_version: str | None = None,
    java_options: Sequence[str] = QUICK_START,
    stdin: bytes = b"",
    timeout_seconds: float = TOOL_TIMEOUT_SECONDS,
) -> ToolOutput:
    """Run `main_class` of the class path `jars` to its end.

    Raises ToolError on a non-zero status and when the time is over; the process has ended then.
    """
    command = [
        "java",
        *java_options,
        "-Dfile.encoding=UTF-8",
        "-cp",
        class_path(jars, kafka_version),
    ]
    command.append(main_class)
    try:
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        said = _said(error.stdout, error.stderr)
        detail = f"{main_class} did not end within {timeout_seconds} s:\n{said}"
        raise ToolError(detail) from error
    if done.returncode:
        said = _said(done.stdout, done.stderr)
        raise ToolError(f"{main_class} ended with status {done.returncode}:\n{said}")
    return ToolOutput(done.stdout, done.stderr)


def server_command(
    jars: str,
    logging: Path,
    *main: str | Path,
    java_options: Sequence[str] = ("-Xmx400m", *SHORT_LIFE),
) -> list[str]:
    """The command that starts a server: the class `main[0]` of the class path `jars`, with
    arguments. The file `logging` gets the settings of what it logs."""
    logging.write_text(_LOGGING, encoding="utf-8")
    command = ["java", *java_options, f"-Dlog4j2.configurationFile={logging}"]
    return [*command, "-cp", jars, *map(str, main)]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server, gracefully if it can; nothing of it is left running."""
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_STOP_TIMEOUT_SECONDS)


def _said(stdout: bytes | None, stderr: bytes | None) -> str:
    """The end of what a tool printed, then the start of its complaint, where a trace says why."""
    printed = (stdout or b"").decode("utf-8", errors="replace")[-_SHOWN_CHARACTERS:]
    return printed + (stderr or b"").decode("utf-8", errors="replace")[:_SHOWN_CHARACTERS]


def dump(paths: Sequence[Path]) -> str:
    """What DumpLogSegments prints of the files, down to records; its findings at the end."""
    return run_dump(paths).text


def run_dump(paths: Sequence[Path], *, decoder: str | None = None) -> ToolOutput:
    """Run a tool with its findings apart, on standard error; status 0 whatever they are.

    `decoder` is that of an internal topic, such as `offsets`. The tool takes a list parted by
    commas, so no path may have one. Raises ToolError.
    """
    files = ",".join(str(path) for path in paths)
    decoders = [f"--{decoder}-decoder"] if decoder else []
    arguments = ["--deep-iteration", "--print-data-log", *decoders, "--files", files]
    return run_tool("org.apache.kafka.tools.DumpLogSegments", arguments)
