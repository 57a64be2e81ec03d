"""What `make dist` builds: what is in the wheel, which is built from the sdist, and that it works
where there is no source tree."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kafkalog import __version__
from kafkalog.spark.packing import libraries, write_zip
from tests.support.repository import ROOT


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def files_below(folder: str) -> set[str]:
    """The files of a folder of the project, but for what Python leaves there."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


# What becomes a module of its own.
SHIMS = {"kafkalog/spark/source/discovery.py", "kafkalog/spark/source/zookeeper_discovery.py"}


def test_the_wheel_holds_the_package_its_data_and_the_shims_and_nothing_else(wheel: Path) -> None:
    expected = {
        *files_below("kafkalog") - SHIMS,
        *(f"kafkalog/{name}" for name in (*files_below("schemas"), *files_below("jobs"))),
        "kafkalog/conf/log4j2.properties",
        "kafkalog/conf/spark-defaults.conf",
        "pyspark_kafkalog/__init__.py",
        "pyspark_zookeeper/__init__.py",
    }
    assert {name for name in names(wheel) if ".dist-info/" not in name} == expected


def test_the_sdist_is_the_package_and_what_goes_with_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        found = {member.name.partition("/")[2] for member in archive.getmembers()}
    folders = {*files_below("kafkalog"), *files_below("schemas"), *files_below("jobs")}
    files = {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"}
    settings = {f"conf/{path.name}" for path in (ROOT / "conf").iterdir()}
    assert found == folders | files | settings


def test_the_metadata_say_version_and_command(wheel: Path, sdist: Path) -> None:
    assert wheel.name == f"kafkalog-{__version__}-py3-none-any.whl"
    assert sdist.name == f"kafkalog-{__version__}.tar.gz"
    with zipfile.ZipFile(wheel) as archive:
        folder = f"kafkalog-{__version__}.dist-info"
        metadata = archive.read(f"{folder}/METADATA").decode()
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
    assert f"\nVersion: {__version__}\n" in metadata
    always = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert "pyarrow" in always
    assert set(always).isdisjoint(("pyspark", "delta-spark", "pandas"))
    assert scripts.split("\n")[:2] == [
        "[console_scripts]",
        "kafkalog = kafkalog.command_line.main:main",
    ]


def test_every_extra_for_users_has_a_row_where_installing_is_reported(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"kafkalog-{__version__}.dist-info/METADATA").decode()
    extras = set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    page = (ROOT / "docs" / "installing.md").read_text()
    assert set(re.findall(r"^\| `kafkalog\[(\w+)\]`", page, re.MULTILINE)) == extras - {
        "bench",
        "dev",
    }
    assert f"kafkalog-{__version__}-py3-none-any.whl" in page


def test_the_wheel_has_three_top_level_folders_and_its_metadata(wheel: Path) -> None:
    top = {name.split("/")[0] for name in names(wheel)}
    assert {name for name in top if not name.endswith(".dist-info")} == {
        "kafkalog",
        "pyspark_kafkalog",
        "pyspark_zookeeper",
    }
    assert len(top) == 4


def test_the_zip_for_a_cluster_holds_what_an_installation_does(wheel: Path, tmp_path: Path) -> None:
    write_zip(tmp_path / "kafkalog.zip")
    with zipfile.ZipFile(tmp_path / "kafkalog.zip") as packed, zipfile.ZipFile(wheel) as built:
        contents = {name: packed.read(name) for name in packed.namelist()}
        installed = {
            name: built.read(name) for name in built.namelist() if ".dist-info" not in name
        }
        built.extractall(tmp_path / "installed")
    assert contents == installed
    program = "import sys; from pathlib import Path; import kafkalog.spark.packing as packing"
    program += "; packing.write_zip(Path(sys.argv[1]))"
    again = tmp_path / "again.zip"
    command = [sys.executable, "-c", program, str(again)]
    subprocess.run(command, env={"PYTHONPATH": str(tmp_path / "installed")}, check=True)
    with zipfile.ZipFile(again) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == contents


def test_what_tasks_need_is_packed_but_for_spark() -> None:
    found = libraries()
    assert {"numba", "llvmlite", "numpy", "pyarrow"} <= found
    assert {"crc32c", "cramjam", "isal", "google-re2"} <= found
    assert not {"pyspark", "py4j"} & found


def test_the_wheel_is_typed_and_carries_the_licences(wheel: Path) -> None:
    found = names(wheel)
    assert "kafkalog/py.typed" in found
    licences = f"kafkalog-{__version__}.dist-info/licenses"
    carried = ["LICENSE", "kafkalog/report/browser/plotly-basic.LICENSE"]
    assert [name for name in carried if f"{licences}/{name}" not in found] == []


PROGRAM = """
import kafkalog, pyspark_kafkalog, pyspark_zookeeper
from kafkalog.messages.catalog import topic_families
from kafkalog.schemas import table_fields, table_names
from kafkalog.spark.session import default_settings
from kafkalog.spark.source.data_source import KafkaLogDataSource
from kafkalog.spark.source.zookeeper_source import ZookeeperDataSource
print(kafkalog.__file__)
print(pyspark_kafkalog.DefaultSource is KafkaLogDataSource)
print(pyspark_zookeeper.DefaultSource is ZookeeperDataSource)
print(table_fields("records")[0]["name"], len(table_names()))
print(len(topic_families()))
print("spark.sql.session.timeZone" in default_settings())
"""


def test_schemas_settings_and_shim_are_found_in_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    # What PYTHONPATH names comes before the editable installation.
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    tables = len(list((ROOT / "schemas" / "tables").glob("*.json")))
    assert result.stdout.splitlines() == [
        str(tmp_path / "installed" / "kafkalog" / "__init__.py"),
        "True",
        "True",
        f"key {tables}",
        "5",
        "True",
    ]


@pytest.mark.parametrize("name", ["kafkalog", "zookeeper"])
def test_spark_finds_the_shims_of_an_editable_installation_too(name: str) -> None:
    # Spark looks through all modules whose names begin with pyspark_.
    program = f"import pyspark_{name} as shim; print(shim.DefaultSource.name())"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd="/", capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == name
