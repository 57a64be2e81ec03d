"""Which file system reads a URI, and with which settings; none receives a request here."""

import re
from pathlib import Path

import pytest
from pyarrow import fs

from kafkalog.errors import OptionError, UnsupportedFormatError
from kafkalog.storage.files.files import InputFile, list_directory
from kafkalog.storage.files.remote_systems import file_system
from kafkalog.storage.files.storage_settings import SETTINGS_OF, option_name, without_secrets
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.repository import EXAMPLES

LOG_DIR = EXAMPLES / "kafka-4.4"


def test_options_are_pyarrows_names_written_as_options_are() -> None:
    assert option_name("endpoint_override") == "storage.endpointOverride"
    assert option_name("region") == "storage.region"


def test_s3_by_settings() -> None:
    """F545: names in any case, with or without the underscores that pyarrow writes."""
    settings = {
        "accesskey": "someone",
        "SECRET_KEY".lower(): "secret",
        "endpointoverride": "http://127.0.0.1:9",
        "connecttimeout": "0.5",
        "forcevirtualaddressing": "false",
    }
    system, path = file_system("s3://bucket/a/b.log", settings)
    assert isinstance(system, fs.S3FileSystem)
    assert path == "bucket/a/b.log"


def test_gs_by_settings() -> None:
    """F540."""
    system, path = file_system("gs://bucket/a", {"anonymous": "true"})
    assert isinstance(system, fs.GcsFileSystem)
    assert path == "bucket/a"


@pytest.mark.parametrize(
    ("uri", "settings"),
    [
        ("abfss://container@account.dfs.core.windows.net/a", {}),
        ("abfs://container/a", {"accountname": "account"}),
    ],
)
def test_abfs_by_its_account(uri: str, settings: dict[str, str]) -> None:
    """F540."""
    key = {"accountkey": "c2VjcmV0"}
    system, path = file_system(uri, settings | key)
    assert isinstance(system, fs.AzureFileSystem)
    assert path == "container/a"


def test_abfs_without_an_account_says_how_it_is_written() -> None:
    with pytest.raises(OptionError, match="container@account"):
        file_system("abfs://container/a", {})


def test_a_number_that_is_none_is_said_so() -> None:
    with pytest.raises(OptionError, match=r"storage\.requestTimeout"):
        file_system("s3://bucket/a", {"requesttimeout": "soon"})


def test_an_unknown_setting_is_named_and_not_shown() -> None:
    """F545."""
    with pytest.raises(OptionError, match=r"storage\.sekret") as caught:
        file_system("gs://bucket/a", {"sekret": "hush-hush"})
    assert "hush-hush" not in str(caught.value)


def test_a_scheme_that_nothing_reads_is_an_error() -> None:
    """F540."""
    with pytest.raises(UnsupportedFormatError, match="nosuch://place"):
        file_system("nosuch://place/a", {})


def test_fsspec_reads_what_pyarrow_does_not(tmp_path: Path) -> None:
    """F540."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in sorted(LOG_DIR.rglob("*")):
        if path.is_file():
            memory.pipe(f"/place/{path.relative_to(LOG_DIR)}", path.read_bytes())
    remote = find_partitions(["memory://place"])
    local = repr(find_partitions([str(LOG_DIR)]))
    assert repr(remote) == local.replace(str(LOG_DIR), "memory://place")
    segment = remote[0].segments[0]
    with InputFile(segment.path) as file:
        content = file.read(0, file.size)
    assert content == (LOG_DIR / segment.path.removeprefix("memory://place/")).read_bytes()
    with pytest.raises(FileNotFoundError):
        list_directory("memory://nowhere")


def test_what_may_be_secret_is_left_out_of_texts() -> None:
    """F545."""
    settings = {"secretkey": "hush", "region": "eu-north-1", "somethingoffsspec": "also"}
    text = without_secrets("hush in eu-north-1, also", settings)
    assert text == "*** in eu-north-1, ***"
    written = without_secrets("https://h/a?sig=a%2Fb%3D and ftp://me:hush@h", {"sastoken": "a/b="})
    assert written == "https://h/a?sig=*** and ftp://***@h"


@pytest.mark.parametrize("scheme", ["s3", "hdfs", "ftp"])
def test_credentials_in_a_uri_are_refused_and_not_shown(scheme: str) -> None:
    """F545."""
    with pytest.raises(OptionError, match=rf"{scheme}://\*\*\*@bucket'") as caught:
        file_system(f"{scheme}://AKIA:hush@bucket/a", {})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("scheme", sorted(SETTINGS_OF))
def test_settings_are_arguments_of_pyarrows_file_systems(scheme: str) -> None:
    systems = {
        "s3": fs.S3FileSystem,
        "gs": fs.GcsFileSystem,
        "abfs": fs.AzureFileSystem,
        "abfss": fs.AzureFileSystem,
        "hdfs": fs.HadoopFileSystem,
    }
    signature = str(systems[scheme].__doc__).partition("\n")[0]
    taken = [name.strip(" *").rpartition(" ")[2] for name in re.split(r"[(,=:)]", signature)]
    assert set(SETTINGS_OF[scheme]) <= set(taken)
