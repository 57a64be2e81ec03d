"""A log directory in an object store is found like one on disk, in few requests."""

from math import ceil
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.remote.stores import Store, needs_store
from tests.support.repository import EXAMPLES

pytestmark = needs_store
LOG_DIR = EXAMPLES / "kafka-4.4"


def found(uri: str, folder: Path, pattern: str) -> tuple[str, str]:
    """What is found by a URI, and what by the path of the served folder, written as URIs."""
    remote = repr(find_partitions([uri + pattern]))
    local = repr(find_partitions([str(folder) + pattern]))
    return remote, local.replace(str(folder), uri)


@pytest.mark.parametrize(
    "pattern",
    [
        "/kafka-4.4",
        "/kafka-*",
        "/*/shop.*",
        "/kafka-4.4/shop.tx-0",
        "/kafka-4.4/shop.tx-0/*411.log",
        "/kafka-4.4/shop.*/00000000000000000000.log",
        "/kafka-4.4/shop.compact-keep-0/00000000000000001406.log.deleted",
    ],
)
def test_partitions_are_found_as_on_disk(store: Store, pattern: str) -> None:
    """F540, F541."""
    uri, folder = store.bucket(EXAMPLES)
    remote, local = found(uri, folder, pattern)
    assert remote == local


def test_a_log_directory_takes_one_listing(store: Store) -> None:
    """F541."""
    uri, folder = store.bucket(LOG_DIR)
    find_partitions([uri])
    requests = store.proxy.requests
    opened = {request.key.rpartition("/")[2] for request in store.proxy.reads()}
    listings = [request for request in requests if request.is_listing]
    # One for what the path is, one for all that is in it.
    assert len(listings) <= 2
    assert opened == {path.name for path in folder.iterdir() if path.is_file()}


def test_planning_opens_no_segment(store: Store) -> None:
    """F541: small segments are planned by their names and sizes."""
    uri, folder = store.bucket(LOG_DIR)
    planned_groups(read_options({"path": uri}))
    opened = {request.key.rpartition("/")[2] for request in store.proxy.reads()}
    assert opened == {path.name for path in folder.iterdir() if path.is_file()}
    assert len(store.proxy.requests) <= 4 + 2 * len(opened)


@pytest.mark.parametrize(
    "options",
    [
        {"maxPartitionBytes": "65536"},
        {"maxRecordsPerPartition": "100"},
        {"maxPartitionBytes": "65536", "fromTimestamp": "1795200000000"},
    ],
)
def test_large_segments_are_split_as_on_a_disk(store: Store, options: dict[str, str]) -> None:
    """F540: many are looked into at a time."""
    uri, folder = store.bucket(LOG_DIR)
    remote = repr(planned_groups(read_options({"path": uri, **options})))
    local = repr(planned_groups(read_options({"path": str(folder), **options})))
    assert remote == local.replace(str(folder), uri)


def test_files_of_a_log_directory_that_are_not_there_are_not_asked_for(store: Store) -> None:
    """F541."""
    uri, folder = store.bucket(LOG_DIR)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    find_partitions([uri])
    assert store.proxy.reads() == []
    assert len(store.proxy.requests) <= 3


def test_hadoops_name_of_the_store_and_a_slash_at_the_end_change_nothing(store: Store) -> None:
    """F540."""
    uri, _ = store.bucket(LOG_DIR)
    named = find_partitions([uri.replace("s3:", "s3a:") + "/"])
    assert named == find_partitions([uri])


@pytest.mark.parametrize("pattern", ["/nothing", "/noth*", "/shop.tx-0/*.nothing"])
def test_what_is_not_in_the_store_is_said_so(store: Store, pattern: str) -> None:
    uri, _ = store.bucket(LOG_DIR)
    with pytest.raises(LogDirError, match="no such file or directory there"):
        find_partitions([uri + pattern])


def test_a_listing_of_more_than_a_page_is_whole(store: Store) -> None:
    """F541: a page has a thousand objects."""
    uri, folder = store.bucket()
    source = LOG_DIR / "shop.tx-0"
    for partition in range(150):
        directory = folder / f"t-{partition}"
        directory.mkdir()
        for path in source.iterdir():
            (directory / path.name).hardlink_to(path)
    logs = find_partitions([uri])
    assert [len(log.segments) for log in logs] == [4] * 150
    listings = [request for request in store.proxy.requests if request.is_listing]
    assert len(listings) == 150 * len(list(source.iterdir())) // 1000


@pytest.fixture
def brokers(store: Store) -> tuple[str, Path]:
    """Three log directories of 150 partitions in a bucket, each of more objects than a page has."""
    uri, folder = store.bucket()
    source = LOG_DIR / "shop.tx-0"
    for broker in range(3):
        log_dir = folder / f"broker-{broker}"
        for number in range(150):
            directory = log_dir / f"t-{150 * broker + number}"
            directory.mkdir(parents=True)
            for path in source.iterdir():
                (directory / path.name).hardlink_to(path)
        text = f"version=1\ncluster.id=three\nnode.id={broker}\n"
        (log_dir / "meta.properties").write_text(text)
        (log_dir / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    return uri, folder


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="everything"),
        pytest.param({"assign": '{"t":[7]}'}, id="a partition"),
        pytest.param(
            {"assign": '{"t":[7]}', "startingOffsets": '{"t":{"7":500}}'}, id="from an offset"
        ),
        pytest.param({"maxPartitionBytes": str(2**30), "view": "byte_ranges"}, id="whole files"),
    ],
)
def test_a_plan_asks_for_no_more_than_it_needs(
    store: Store, brokers: tuple[str, Path], options: dict[str, str]
) -> None:
    """F541: a listing for each thousand objects, and no object of a partition is opened but the id
    of a topic that several log directories have (F925): one of each."""
    uri, folder = brokers
    found = planned_groups(read_options({"path": f"{uri}/broker-*", **options}))
    assert found
    objects = [
        sum(path.is_file() for path in log_dir.rglob("*")) for log_dir in sorted(folder.iterdir())
    ]
    listings = [request for request in store.proxy.requests if request.is_listing]
    # One more says which log directories there are.
    assert len(listings) == 1 + sum(ceil(count / 1000) for count in objects)
    opened = sorted(request.key.partition("/")[2] for request in store.proxy.reads())
    small = ("meta.properties", "recovery-point-offset-checkpoint")
    found_files = [key.partition("/")[2] for key in opened]
    assert [key for key in found_files if key.rpartition("/")[2] in small] == [
        f"broker-{broker}/{name}" for broker in range(3) for name in small
    ]
    ids = [key.split("/") for key in found_files if key.rpartition("/")[2] not in small]
    assert [(broker, name) for broker, _, name in ids] == [
        (f"broker-{broker}", "partition.metadata") for broker in range(3)
    ]
    # Each is looked up for its size, then read.
    others = [request for request in store.proxy.requests if not request.is_listing]
    assert len(others) == 2 * len(opened)
