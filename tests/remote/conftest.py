"""One object store for all tests of this directory, behind a proxy that takes notes."""

from collections.abc import Iterator

import pytest

from kafkalog.storage.files.file_access import FileAccess, use_file_access
from tests.remote.faulty_proxy import FaultyProxy
from tests.remote.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.remote.stores import Store


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A running object store."""
    with Gateway(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def store(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store behind a proxy of the test's own, with the credentials in the environment."""
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with FaultyProxy(gateway.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield Store(gateway.root, proxy)
    use_file_access(FileAccess())
