"""Where the archive of Spark's classes lies, and when a JVM starts from it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from kafkalog.spark import class_archive
from kafkalog.spark.class_archive import _end_jvm, archive_options, archived_classes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The one place for archives, and a JVM whose file can be changed."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_bytes(b"a JVM")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setattr(class_archive, "_candidates", lambda: [tmp_path / "kept"])
    # The JVM of this process, if it has one, is that of the tests' session.
    monkeypatch.setattr(class_archive, "_end_jvm", lambda: None)
    class_archive._name.cache_clear()
    yield tmp_path / "kept"
    class_archive._name.cache_clear()


def _archived(content: bytes) -> Path:
    """Let a JVM write an archive; return where it wrote it."""
    with archived_classes() as options:
        path = Path(options.split("-XX:ArchiveClassesAtExit=")[1])
        if content:
            path.write_bytes(content)
    return path


def test_a_jvm_starts_from_what_another_has_written(folder: Path) -> None:
    assert archive_options() is None
    written = _archived(b"classes")
    (kept,) = folder.iterdir()
    assert (kept.name, kept.read_bytes()) == (written.name, b"classes")
    assert (archive_options() or "").endswith(f" -XX:SharedArchiveFile={kept}")


@pytest.mark.parametrize("is_environment", [True, False])
def test_another_jvm_has_an_archive_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_environment: bool
) -> None:
    if is_environment:
        monkeypatch.setattr(sys, "prefix", str(folder))
    _archived(b"classes")
    (tmp_path / "jdk" / "bin" / "java").write_bytes(b"a newer JVM")
    class_archive._name.cache_clear()
    assert archive_options() is None
    _archived(b"newer classes")
    # In the user's cache the older one can be that of another environment.
    kept = {path.read_bytes() for path in folder.iterdir()}
    assert kept == {b"newer classes"} | (set() if is_environment else {b"classes"})


def test_a_jvm_that_writes_none_is_not_asked_for_one_again(folder: Path) -> None:
    _archived(b"")
    assert archive_options() == ""


def test_what_others_can_write_to_is_not_used(folder: Path) -> None:
    _archived(b"classes")
    (kept,) = folder.iterdir()
    kept.chmod(0o666)
    assert archive_options() is None
    kept.chmod(0o644)
    folder.chmod(0o777)
    assert archive_options() is None
    with archived_classes() as options:
        assert options == ""


def test_a_failed_job_leaves_no_archive(folder: Path) -> None:
    with pytest.raises(KeyError), archived_classes() as options:
        Path(options.split("-XX:ArchiveClassesAtExit=")[1]).write_bytes(b"half of the classes")
        raise KeyError
    assert not [*folder.iterdir()]


def test_a_jvm_that_writes_for_too_long_is_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = subprocess.Popen(["sleep", "300"], stdin=subprocess.PIPE)
    gateway = SimpleNamespace(proc=jvm, shutdown=lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(class_archive, "_end_jvm", _end_jvm)
    monkeypatch.setattr(class_archive, "_WRITING_SECONDS", 0.1)
    _archived(b"half of the classes")
    assert jvm.wait(60) == -signal.SIGKILL
    assert not [*folder.iterdir()]


def test_a_directory_with_a_blank_in_its_name_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The options of a JVM are one text, divided at blanks.
    monkeypatch.setattr(class_archive, "user_cache", lambda: tmp_path / "a cache")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert [*class_archive._candidates()] == []
