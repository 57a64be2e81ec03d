"""Users from a file, and files that others can read."""

import os
from pathlib import Path

import pytest

from kafkalog.errors import OptionError
from kafkalog.server.security.scram import MECHANISMS
from kafkalog.server.security.users import Users, read_users


def written(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_names_and_passwords_are_those_of_a_properties_file(tmp_path: Path) -> None:
    content = "# who reads\nalice=secret=1\nb\\ ob=gr\u00fcn\n".encode()
    users = read_users("--users", written(tmp_path / "users", content))
    assert users.has_password("alice", b"secret=1")
    assert users.has_password("b ob", "gr\u00fcn".encode())
    for name, password in (("alice", b"secret"), ("alice", b""), ("carol", b"secret=1")):
        assert not users.has_password(name, password)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o620, 0o666])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "users", b"alice=secret\n", mode)
    with pytest.raises(OptionError, match="chmod 600") as caught:
        read_users("--users", path)
    assert "secret" not in str(caught.value)


def test_a_group_may_read_the_file_of_root_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "users", b"alice=secret\n", 0o640)
    if os.geteuid() == 0:
        assert read_users("--users", path).has_password("alice", b"secret")
        os.chown(path, 12345, -1)
    with pytest.raises(OptionError, match="chmod 600"):
        read_users("--users", path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((b"", "there is none"), (b"alice\n", "there is none")),
        *((b"alice=\n", "'alice' has no password"), (b"alice=\xff\n", "in UTF-8")),
        (b"a=" + b"x" * (1 << 20), "bytes at most"),
    ],
)
def test_what_is_no_file_of_users_is_an_error(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read_users("--users", written(tmp_path / "users", content))


def test_a_missing_file_and_a_pipe_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("missing", "pipe"):
        with pytest.raises(OptionError, match="a file that can be read"):
            read_users("--users", str(tmp_path / name))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_unknown_user_looks_like_a_known_one(mechanism: str) -> None:
    users = Users({"alice": "secret"})
    known, unknown = (users.credential(mechanism, name) for name in ("alice", "carol"))
    assert unknown.salt == users.credential(mechanism, "carol").salt
    assert (len(unknown.salt), unknown.iterations) == (len(known.salt), known.iterations)
    assert len(unknown.stored_key) == len(known.stored_key)
    assert unknown.stored_key != users.credential(mechanism, "carol").stored_key
