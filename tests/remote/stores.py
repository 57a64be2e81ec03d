"""What tests with an object store share: marks, options, and folders as buckets."""

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.remote.faulty_proxy import FaultyProxy
from tests.remote.gateway import ACCESS_KEY, SECRET_KEY, why_no_gateway

_MISSING = why_no_gateway()
needs_store = [
    pytest.mark.remote,
    pytest.mark.deep,
    pytest.mark.skipif(bool(_MISSING), reason=_MISSING),
    pytest.mark.timeout(900),  # whichever test is first waits until Go has built the server
]


@dataclass(frozen=True)
class Store:
    """A served folder, and the proxy in front of it."""

    root: Path
    proxy: FaultyProxy

    def bucket(self, source: Path | None = None) -> tuple[str, Path]:
        """A new bucket with a copy of a folder's contents: its URI, and the folder served."""
        name = f"b-{uuid.uuid4().hex[:12]}"
        folder = self.root / name
        if source is None:
            folder.mkdir()
        else:
            shutil.copytree(source, folder)
        return f"s3://{name}", folder

    @property
    def options(self) -> dict[str, str]:
        """The store as options of the source."""
        return {
            "storage.accessKey": ACCESS_KEY,
            "storage.secretKey": SECRET_KEY,
            "storage.region": "us-east-1",
            "storage.endpointOverride": self.proxy.url,
        }
