"""What an error that came by way of Spark says of itself, in a line."""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from kafkalog.errors import OutOfMemoryError
from kafkalog.words import in_a_line

_OURS = "kafkalog.errors."
_NO_MEMORY = re.compile(r"^(numpy\.[\w.]+|pyarrow\.lib\.Arrow)?MemoryError\b", re.MULTILINE)
# What Hadoop says of a path that it has no file system for; Python opens the same path.
_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme|S3AFileSystem not found")
_TRACEBACK = "Traceback (most recent call last):"
# Causes of causes: more than Spark ever has, and an end where they go round.
_MOST_CAUSES = 30
_KEPT = "_kafkalog_words"


def keep_words(error: BaseException) -> None:
    """Keep what an error of Spark's says of itself: it asks the JVM, which ends before it is
    said."""
    if isinstance(error, (PySparkException, Py4JError)):
        setattr(error, _KEPT, last_words(error))


def last_words(error: PySparkException | Py4JError) -> tuple[str, str]:
    """Return the name and the message of the error that a Python worker raised, without the way
    that it took through Spark; or else what Spark says, with what was the first cause."""
    kept: tuple[str, str] | None = getattr(error, _KEPT, None)
    if kept is not None:
        return kept
    text = str(error)
    ours = [line for line in text.splitlines() if line.startswith(_OURS)]
    if ours:
        kind, _, message = ours[-1].removeprefix(_OURS).partition(": ")
        return kind, message
    if _NO_MEMORY.search(text):
        return OutOfMemoryError.__name__, str(OutOfMemoryError())
    line = in_a_line(_last_line(error, text))
    if _NO_FILE_SYSTEM.search(line):
        line += "; Delta's log is read and written by Hadoop: see object stores in docs/ingest.md"
    return type(error).__name__, line


def _last_line(error: PySparkException | Py4JError, text: str) -> str:
    if _TRACEBACK in text:
        # The last line that is not Spark's own, which are indented or say where in the JVM.
        after = text.rpartition(_TRACEBACK)[2].splitlines()
        return next((line for line in after if line and not line.startswith(" ")), text)
    if isinstance(error, Py4JJavaError):
        thrown: Any = error.java_exception
        text = str(thrown).partition("\n")[0]
    elif isinstance(error, Py4JError):
        return f"Spark's JVM has ended ({text}): it may have had too little memory (driver-memory)"
    else:
        thrown = getattr(error, "_origin", None)
    cause = _first_cause(thrown)
    return text if cause is None or cause in text else f"{text.rstrip()}: {cause}"


def _first_cause(thrown: Any) -> str | None:
    """Return what the exception says that was the cause of all others."""
    for _ in range(_MOST_CAUSES):
        cause = thrown.getCause() if hasattr(thrown, "getCause") else None
        if cause is None:
            break
        thrown = cause
    else:
        return None
    message = thrown.getMessage() if hasattr(thrown, "getMessage") else None
    return str(message).partition("\n")[0] if message else None
