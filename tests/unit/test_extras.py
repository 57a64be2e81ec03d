"""What works without the libraries that extras bring, and the line that names a missing extra."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.extras import MissingExtraError
from tests.support.repository import ROOT

PROGRAM = """
import sys
class Missing:
    names = (
        *("pyspark", "py4j", "delta", "deltalake", "pandas", "pyiceberg", "sqlalchemy"),
        *("fsspec", "plotly"),
    )
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in cls.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
from click.testing import CliRunner
from kafkalog.command_line.main import COMMANDS, kafkalog
def run(*arguments):
    done = CliRunner().invoke(kafkalog, arguments)
    print(arguments[0], done.exit_code, done.stderr.strip())
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
logs, tables = sys.argv[1:]
for name in COMMANDS:
    run(*name.split(), "--help")
for name in ("ls", "check", "groups", "txns", "recover"):
    run(name, logs)
run("export", logs, "--output-dir", tables, "--processes", "1")
run("optimize", tables + "/ingested_records")
run("job", "validate-checksums", "--help")
run("job", "validate-checksums", logs, "--output-dir", tables)
import kafkalog
print([part.topic for part in kafkalog.find_partitions([logs])][0])
from kafkalog import read
"""
LINE = "this needs pyspark, which is not installed: pip install 'kafkalog[spark]'"


def test_commands_and_the_reader_need_no_extra_and_a_missing_one_is_named(tmp_path: Path) -> None:
    logs = str(ROOT / "examples" / "shop-week")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, logs, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    *lines, of_job, topic = run.stdout.splitlines()
    assert [line for line in lines if line.split()[1] != "0"] == []
    assert of_job == f"job 3 error: {LINE}"
    assert topic == "__consumer_offsets"
    assert run.stderr.splitlines()[-1] == f"kafkalog.extras.MissingExtraError: {LINE}"


def test_frames_are_for_those_who_have_the_library() -> None:
    # Not [spark]: who asks for a frame needs no Spark, and may have one of another version.
    assert str(MissingExtraError("pandas")).endswith("pip install 'pandas<3'")
    assert str(MissingExtraError("polars")).endswith("pip install 'polars'")


def test_a_module_of_another_name_is_called_by_its_library() -> None:
    said = "this needs protobuf, which is not installed: pip install 'kafkalog[protobuf]'"
    assert str(MissingExtraError("google")) == said


def test_the_error_is_an_import_error_and_can_be_pickled() -> None:
    error = MissingExtraError("pyiceberg")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(ImportError, match=r"pip install 'kafkalog\[iceberg\]'"):
        raise error
