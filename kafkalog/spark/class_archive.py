"""An archive of the classes that Spark's JVM loads, from which later JVMs start faster.

The JVM maps the file into memory (Class Data Sharing). It uses no archive that another JVM or other
jars have made; so the file's name has a hash of both, and a new one is made when they change.
`python -m kafkalog.spark.archive_classes` makes it, and so does the first job of a user. Reasons:
docs/decisions/0032.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory

import click

from kafkalog.storage.files.own_directories import is_own, own_directories, user_cache

# Also written empty, for a JVM that makes no archive: then no run tries it again.
_ENDING = ".jsa"
_WRITING_SECONDS = 120
# Of a JVM that neither uses nor makes one.
NO_ARCHIVE = "-Xshare:auto"
# The JVM writes its warnings to stdout, such as of an archive that it does not use.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def archive_options() -> str | None:
    """Return the JVM's options to start from the archive, None where there is none yet."""
    for folder in own_directories(_candidates()):
        path = folder / _name()
        with suppress(OSError):
            found = path.stat()
            if is_own(found):
                return f"{_QUIET} -XX:SharedArchiveFile={path}" if found.st_size else ""
    return None


@contextmanager
def archived_classes() -> Iterator[str]:
    """Yield the options of a JVM that writes the archive when it ends. After the session in it is
    stopped, end the JVM and keep the archive, if that can be done."""
    temporary = _new_folder()
    if temporary is None:
        yield ""
        return
    with temporary as own:
        written = Path(own, _name())
        try:
            yield f"{_QUIET} -XX:ArchiveClassesAtExit={written}"
        except BaseException as error:
            from kafkalog.spark.spark_errors import keep_words

            keep_words(error)
            # The JVM complains if there is no place for its archive.
            with suppress(OSError, TimeoutExpired):
                _end_jvm()
            raise
        click.echo("keeping Spark's classes, once: later jobs start faster", err=True)
        with suppress(OSError, TimeoutExpired):
            _end_jvm()
            _keep(written, Path(own).parent)


def _new_folder() -> TemporaryDirectory[str] | None:
    for folder in own_directories(_candidates(), make=True):
        with suppress(OSError):  # an environment that root has installed
            return TemporaryDirectory(dir=folder)
    return None


def _keep(written: Path, folder: Path) -> None:
    written.touch()
    written.chmod(0o644)  # whatever the umask is
    if folder == Path(sys.prefix):  # In the user's cache the others can be of other environments.
        for old in folder.glob(f"{_name().rsplit('-', 1)[0]}-*{_ENDING}"):
            old.unlink(missing_ok=True)
    written.replace(folder / _name())


def _candidates() -> list[Path]:
    environment = [Path(sys.prefix)] if sys.prefix != sys.base_prefix else []
    # The options of a JVM are one text, divided at blanks.
    return [path for path in (*environment, user_cache()) if not set(str(path)) & set(" \t\n'\"")]


@cache
def _name() -> str:
    """Return the archive's name, with a hash of the JVM and of Spark's jars."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "")
    pyspark = find_spec("pyspark")
    jars = sorted(Path(str(pyspark and pyspark.origin)).with_name("jars").glob("*.jar"))
    parts = []
    for path in (java.resolve(), *jars):
        with suppress(OSError):
            found = path.stat()
            parts.append(f"{path} {found.st_size} {found.st_mtime_ns}")
    return f"spark-classes-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}{_ENDING}"


def _end_jvm() -> None:
    """End the JVM of a stopped session, which writes the archive; at once if that takes too long:
    it would go on writing, and complain after the job that its folder is missing."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process.stdin.close()  # The JVM of a session ends with its input.
    try:
        process.wait(_WRITING_SECONDS)
    except TimeoutExpired:
        process.kill()
        raise
