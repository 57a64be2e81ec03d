"""What documents show: commands and what they print, Python and what it prints.

A block ```console has lines `$ command`, each followed by what it prints; `echo $?` asks how the
one before ended. A block ```text is what the ```python block before it prints; a block
```python live needs a broker. A line `...` stands for any number of lines, `…` for any part of a
line. What a document writes goes to a directory of the test.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from tests.support.repository import ROOT

_BLOCK = re.compile(r"^```([\w ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JOB = re.compile(r"^(?:kafkalog job ([\w-]+)|\.venv/bin/python jobs/(\w+)\.py) ")
_SECONDS = 240
# What documents write to; in a test all of these are one directory.
_WRITTEN_TO = re.compile(r"(?<![\w.-])/(?:tmp|mnt/(new)|(lake)|(restore))/")


class Shown(NamedTuple):
    """A command of a shell, or lines of Python, and what is printed; None where nothing is said."""

    line: int
    is_python: bool
    text: str
    printed: str | None


def shown_in(document: Path, python: str = "python") -> list[Shown]:
    """All that a document shows, in its order, with the Python of blocks of this kind."""
    text, found = document.read_text(), []
    for block in _BLOCK.finditer(text):
        kind, body, line = block[1], block[2], text.count("\n", 0, block.start()) + 2
        if kind == "console":
            found += _commands(body, line)
        elif kind == python:
            found.append(Shown(line, True, body, None))
        elif kind == "text" and found and found[-1].is_python:
            found[-1] = found[-1]._replace(printed=body)
    return found


def _commands(body: str, line: int) -> list[Shown]:
    starts = [match.start() for match in re.finditer(r"^\$ ", body, re.MULTILINE)]
    found = []
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        # A command goes on behind a backslash.
        command = re.match(r"\$ ((?:.*\\\n)*.*)\n?", body[start:end])
        assert command is not None
        place = line + body.count("\n", 0, start)
        printed = body[start + command.end() : end]
        found.append(Shown(place, False, command[1].replace("\\\n", " "), printed))
    return found


def lines_to_copy(document: Path) -> list[Shown]:
    """The commands of blocks without a name, whose paths stand for the reader's own, and Python."""
    text, found = document.read_text(), []
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        if block[1] == "python":
            found.append(Shown(line, True, block[2], None))
        elif not block[1]:
            body = block[2].replace("\\\n", " ")
            starts = ("kafkalog ", ".venv/bin/python jobs/")
            texts = [row for row in body.splitlines() if row.startswith(starts)]
            found += [Shown(line, False, row, None) for row in texts]
    return found


def pattern_of(printed: str) -> re.Pattern[str]:
    """What matches the output that a document shows."""
    lines = []
    for line in printed.strip("\n").splitlines():
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            parts = (re.escape(part) for part in line.rstrip().split("…"))
            lines.append(r"[^\n]*".join(parts) + r"[ ]*\n")
    return re.compile("".join(lines))


class Reader:
    """Somebody who does what a document shows, in its order; `own_paths` are what they have in
    place of the paths of a text, `names` what their session has."""

    def __init__(
        self,
        spark: SparkSession | None,
        scratch: Path,
        own_paths: Callable[[str], str] = lambda text: text,
        **names: Any,
    ) -> None:
        self._spark = spark
        self._scratch = scratch
        self._own_paths = own_paths
        self._names: dict[str, Any] = {"spark": spark, **names}
        self._code = 0

    def does(self, shown: Shown) -> str:
        """What is printed. An error of a command has to be asked for, by `echo $?`."""
        text = self._own_paths(_WRITTEN_TO.sub(self._scratch_for, shown.text))
        if shown.is_python:
            return self._python(text)
        if text == "echo $?":
            code, self._code = self._code, 0
            return f"{code}\n"
        assert self._code == 0, f"the command before line {shown.line} ended with {self._code}"
        job = _JOB.match(text)
        printed = self._job(job[1] or job[2], text[job.end() :]) if job else self._shell(text)
        return printed.replace(f"{self._scratch}/", "/tmp/")

    def _scratch_for(self, place: re.Match[str]) -> str:
        return f"{self._scratch / (place[1] or place[2] or place[3] or '')}/"

    def ends(self) -> None:
        """Nothing may be left to ask for."""
        assert self._code == 0, f"the last command ended with {self._code}"

    def _python(self, text: str) -> str:
        told = StringIO()
        with redirect_stdout(told):
            exec(compile(text, "document", "exec"), self._names)
        return told.getvalue()

    def _job(self, name: str, arguments: str) -> str:
        """A job in this process, in the tests' session: starting Spark takes longer than it."""
        told = StringIO()
        with redirect_stdout(told):
            self._code = import_module(f"jobs.{name.replace('-', '_')}").main(
                shlex.split(arguments)
            )
        return told.getvalue()

    def _shell(self, text: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "-c", text],
            cwd=ROOT,
            # What a line adds to the files of a shell is not for whoever runs the tests.
            env={**os.environ, "PATH": path, "COLUMNS": "160", "HOME": str(self._scratch)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        self._code = ran.returncode
        return ran.stdout
