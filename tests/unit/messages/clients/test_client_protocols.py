"""What members of Connect's and Streams' groups write, made by hand; golden tests have real ones.

Rules: docs/format.md F1251 and F1252.
"""

import struct

import pytest

from kafkalog.messages.clients.client_protocols import (
    connect_work,
    read_connect_assignment,
    read_streams_assignment,
    work_of_instance,
    work_of_worker,
)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def work(given: dict[str, list[int]]) -> bytes:
    parts = [
        text(name) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for name, numbers in given.items()
    ]
    return struct.pack(">i", len(parts)) + b"".join(parts)


def assignment(version: int, given: dict[str, list[int]], *revoked: dict[str, list[int]]) -> bytes:
    begin = struct.pack(">hh", version, 0) + text("leader") + text("http://leader/")
    return begin + struct.pack(">q", 7) + work(given) + b"".join(map(work, revoked))


def subscription(version: int, held: bytes | None = None) -> bytes:
    begin = struct.pack(">h", version) + text("http://worker/") + struct.pack(">q", 7)
    if version == 0:
        return begin
    return begin + struct.pack(">i", -1 if held is None else len(held)) + (held or b"")


def test_a_worker_has_what_it_had_with_what_is_new_and_without_what_is_revoked() -> None:
    # F1251
    held = assignment(1, {"a": [-1, 0, 1]}, {})
    given = assignment(1, {"b": [-1]}, {"a": [1]})
    assert connect_work(subscription(1, held), given) == {("a", None), ("a", 0), ("b", None)}
    assert work_of_worker(subscription(1, held), given) == "connectors a, b; tasks a-0"
    assert work_of_worker(subscription(1), given) == "connectors b; tasks none"


def test_the_eager_protocol_assigns_all() -> None:
    given = assignment(0, {"a": [-1, 3]})
    assert work_of_worker(subscription(0), given) == "connectors a; tasks a-3"


@pytest.mark.parametrize("cut", range(60))
def test_bytes_of_any_length_are_work_or_none(cut: int) -> None:
    given = assignment(1, {"b": [-1]}, {})
    whole = work_of_worker(subscription(1), given)
    assert work_of_worker(subscription(1), given[:cut]) in (None, whole)
    user_data = struct.pack(">iii", 11, 11, 2**31 - 1) + b"x" * cut
    assert work_of_instance(None, user_data) is None


def test_an_error_of_the_leader_is_not_an_assignment() -> None:
    with pytest.raises(ValueError, match="error 1"):
        read_connect_assignment(struct.pack(">hh", 1, 1))


def test_tasks_of_versions_without_and_with_named_topologies() -> None:
    # F1252
    old = struct.pack(">ii", 9, 9) + struct.pack(">iii", 1, 0, 3) + struct.pack(">i", 0)
    assert read_streams_assignment(old).active == ("0_3",)
    name = "part".encode("utf-16-be")
    named = struct.pack(">ii", 11, 11) + struct.pack(">iiii", 1, 0, 3, 4) + name
    assert read_streams_assignment(named + struct.pack(">i", 0)).active == ("part__0_3",)
