"""Small files that are written as a whole: what a disk does not take is named."""

import errno
import os
from pathlib import Path

import pytest

from kafkalog.storage.files.output_files import write_file


def test_a_full_disk_is_reported_with_the_file_and_leaves_the_one_that_was_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        write_file(str(path), b"after", full)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("report.html", "before")
    ]
