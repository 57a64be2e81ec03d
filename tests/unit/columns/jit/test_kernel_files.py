"""Where machine code is kept: installations that nothing can be written to, homes of no user, and
directories that others can write to."""

import hashlib
import os
import pickle
import sys
from pathlib import Path

import pytest

from kafkalog.columns.jit.compiled import COMPILED
from kafkalog.columns.jit.kernel_files import keep_code, kept_code
from tests.unit.columns.installed_kernels import USES_NUMBA, USES_STORED, installed, run

ANOTHER_USER = 54321
compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
by_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


class Planted:
    """Unpickled, it leaves a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one place for code."""
    folder = tmp_path / "above" / "kept"
    monkeypatch.setattr("kafkalog.columns.jit.kernel_files._candidates", lambda: [folder])
    return folder


@pytest.mark.parametrize("umask", [0, 0o002, 0o077])
def test_code_is_found_again_whatever_the_umask_is(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        keep_code("name", b"code")
    finally:
        os.umask(before)
    assert kept_code("name") == b"code"
    assert kept_code("another") is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_code_in_a_directory_that_others_can_write_to_is_not_loaded(
    folder: Path, mode: int
) -> None:
    keep_code("name", b"code")
    folder.chmod(mode)
    assert kept_code("name") is None
    keep_code("other", b"code")
    assert len(list(folder.iterdir())) == 1


def test_code_below_a_directory_that_others_can_write_to_is_not_loaded(folder: Path) -> None:
    keep_code("name", b"code")
    folder.parent.chmod(0o777)
    assert kept_code("name") is None
    # As in /tmp, others cannot rename what they do not own.
    folder.parent.chmod(0o1777)
    assert kept_code("name") == b"code"


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_to_is_not_loaded(folder: Path, mode: int) -> None:
    keep_code("name", b"code")
    (file,) = folder.iterdir()
    file.chmod(mode)
    assert kept_code("name") is None


@by_root
@pytest.mark.parametrize("place", ["kept/name.kernel", "kept", "."])
def test_what_another_user_owns_is_not_loaded(folder: Path, place: str) -> None:
    keep_code("name", b"code")
    owned = folder.parent / place
    os.chown(owned, ANOTHER_USER, 0)
    assert kept_code("name") is None
    os.chown(owned, os.geteuid(), 0)
    assert kept_code("name") == b"code"


@by_root
def test_nothing_is_made_in_the_home_of_another_user(folder: Path) -> None:
    folder.parent.mkdir()
    os.chown(folder.parent, ANOTHER_USER, 0)
    keep_code("name", b"code")
    assert list(folder.parent.iterdir()) == []


def test_links_and_named_pipes_are_not_loaded(folder: Path) -> None:
    keep_code("name", b"code")
    file, moved = folder / "name.kernel", folder / "moved"
    file.rename(moved)
    file.symlink_to(moved)
    assert kept_code("name") is None
    file.unlink()
    os.mkfifo(file)
    assert kept_code("name") is None
    file.unlink()
    moved.rename(file)
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to("elsewhere")
    assert kept_code("name") is None


@compiled
def test_kernels_are_kept_in_a_directory_of_their_own_or_compiled_again(tmp_path: Path) -> None:
    place = installed(tmp_path, zipped=False)
    assert run(USES_NUMBA, place, tmp_path / "t") == ["2", "0"]
    assert run(USES_NUMBA, place, tmp_path / "t") == ["2", "1"]
    (kept,) = (tmp_path / "t").iterdir()
    # Another user could have put code there.
    kept.chmod(0o777)
    assert run(USES_NUMBA, place, tmp_path / "t") == ["2", "0"]
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run(USES_NUMBA, place, tmp_path / "u", **cache) == ["2", "0"]
    assert list((tmp_path / "u").iterdir()) == []


@compiled
def test_kernels_in_a_zip_file_are_found_again(tmp_path: Path) -> None:
    place = installed(tmp_path, zipped=True)
    assert run(USES_NUMBA, place, tmp_path / "t") == ["2", "0"]
    assert run(USES_NUMBA, place, tmp_path / "t") == ["2", "1"]


@compiled
def test_relative_cache_directories_are_ignored(tmp_path: Path) -> None:
    place = installed(tmp_path, zipped=False)
    relative = {"XDG_CACHE_HOME": "cache", "NUMBA_CACHE_DIR": "numba", "HOME": "home"}
    for program, mode in ((USES_NUMBA, "compiled"), (USES_STORED, "stored")):
        run(program, place, tmp_path / "t", mode, **relative)
    names = [path.name for path in (tmp_path / "t").iterdir()]
    assert names == [f"kafkalog-kernels-{os.geteuid()}"]


@compiled
@pytest.mark.parametrize("mode", ["compiled", "stored"])
def test_a_cache_that_cannot_be_written_to_is_still_read(tmp_path: Path, mode: str) -> None:
    place, cache = installed(tmp_path, zipped=False), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    program, found = (USES_NUMBA, "1") if mode == "compiled" else (USES_STORED, "False")
    run(program, place, tmp_path / "t", mode, **cache)
    (tmp_path / "cache").chmod(0o555)
    assert run(program, place, tmp_path / "t", mode, **cache) == ["2", found]
    assert list((tmp_path / "t").iterdir()) == []


def planted(folder: Path, content: bytes) -> None:
    """Put content, with the right checksum, in place of each kernel that is kept in a folder."""
    for file in folder.glob("*.kernel"):
        file.write_bytes(hashlib.sha256(content).digest() + content)


@by_root
@compiled
def test_a_planted_pickle_is_not_loaded_from_the_directory_of_another_user(tmp_path: Path) -> None:
    place, cache, mark = installed(tmp_path, zipped=False), tmp_path / "cache", tmp_path / "mark"
    variables = {"XDG_CACHE_HOME": str(cache)}
    run(USES_NUMBA, place, tmp_path / "t", **variables)
    planted(cache / "kafkalog", pickle.dumps([Planted(mark)] * 11))
    # This is what makes it an attack: in a directory of root's own it is code of root's.
    run(USES_NUMBA, place, tmp_path / "t", **variables)
    assert mark.is_dir()
    planted(cache / "kafkalog", pickle.dumps([Planted(mark)] * 11))
    mark.rmdir()
    os.chown(cache, ANOTHER_USER, ANOTHER_USER)
    assert run(USES_NUMBA, place, tmp_path / "t", **variables) == ["2", "0"]
    assert not mark.exists()


@by_root
@compiled
def test_planted_machine_code_is_not_loaded_from_the_directory_of_another_user(
    tmp_path: Path,
) -> None:
    place, cache = installed(tmp_path, zipped=False), tmp_path / "cache"
    variables = {"XDG_CACHE_HOME": str(cache)}
    run(USES_STORED, place, tmp_path / "t", "stored", **variables)
    (kept,) = (cache / "kafkalog").iterdir()
    source = place / "kafkalog" / "columns" / "writing" / "encoding_kernels.py"
    text = source.read_text()
    source.write_text(text.replace("size = long(1)", "size = long(41)"))
    run(USES_STORED, place, tmp_path / "t", "stored", **variables)
    (other,) = set((cache / "kafkalog").iterdir()) - {kept}
    source.write_text(text)
    other.rename(kept)
    assert run(USES_STORED, place, tmp_path / "t", "stored", **variables) == ["42", "False"]
    os.chown(kept, ANOTHER_USER, ANOTHER_USER)
    assert run(USES_STORED, place, tmp_path / "t", "stored", **variables) == ["2", "True"]


@compiled
def test_the_cache_of_numba_itself_is_not_read(tmp_path: Path) -> None:
    # numba would load it, whoever owns it.
    from numba.core.caching import _CacheLocator

    place, mark = installed(tmp_path, zipped=False), tmp_path / "mark"
    source = place / "kafkalog" / "columns" / "writing" / "encoding_kernels.py"
    lines = source.read_text().splitlines()
    line = next(n for n, text in enumerate(lines) if text.startswith("def varint_size"))
    name, version = "encoding_kernels.varint_size", "py{}{}".format(*sys.version_info)
    subpath = _CacheLocator.get_suitable_cache_subpath(str(source))
    for number in (line, line + 1):  # of the decorator or the function
        for folder in ("cache/numba", "numba"):
            index = tmp_path / folder / subpath / f"{name}-{number}.{version}.nbi"
            index.parent.mkdir(parents=True, exist_ok=True)
            index.write_bytes(pickle.dumps(Planted(mark)))
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    assert run(USES_NUMBA, place, tmp_path / "t", **cache) == ["2", "0"]
    assert not mark.exists()
