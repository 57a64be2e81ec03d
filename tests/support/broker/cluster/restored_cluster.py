"""The fixture of a cluster whose disks were copied, restored, and what clients do with it."""

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.broker.cluster.restored_node import RestoredNode, ports
from tests.support.golden.restored_copies import AS_OF

Place = tuple[str, int]
MARGIN_MS = 2000
WAIT_SECONDS = 40
PARTITIONS = {"events": 4, "transfers": 3, "derived": 2, "plain": 1, "state": 2, "again": 1}


def restore(disks: list[str], target: Path, *arguments: str, as_of: str = AS_OF) -> dict[str, Any]:
    return restored_directory(disks, target, "--as-of", as_of, *arguments)


def restored_directory(disks: list[str], target: Path, *arguments: str) -> dict[str, Any]:
    """Restore as of the last moment unless `arguments` give one, with a node on free ports; return
    the manifest."""
    broker, controller = ports()
    node = f"1@127.0.0.1:{broker}/{controller}"
    given = [*disks, "--to", str(target), "--nodes", node, *arguments]
    result = CliRunner().invoke(kafkalog, ["restore", *given])
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    return manifest


def ledger(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = (folder / "ledgers" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def places(*topics: str) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number)
        for topic in topics or PARTITIONS
        for number in range(PARTITIONS[topic])
    ]


def ends(
    node: RestoredNode, spec: OffsetSpec, *topics: str, **options: Any
) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        found = admin.list_offsets(dict.fromkeys(places(*topics), spec), **options)
        try:
            return {
                (each.topic, each.partition): future.result().offset
                for each, future in found.items()
            }
        except KafkaException:
            # A node that has just started still elects leaders.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def consumed(node: RestoredNode, isolation: str, *topics: str) -> dict[tuple[str, int, int], Any]:
    """The values that a consumer gets from the start to the end, by topic, partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    starts = ends(node, OffsetSpec.earliest(), *topics)
    wanted = places(*topics)
    for place in wanted:
        place.offset = starts[place.topic, place.partition]
    consumer.assign(wanted)
    left = {(place.topic, place.partition) for place in wanted}
    found: dict[tuple[str, int, int], Any] = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while left:
        assert time.monotonic() < deadline, left
        for record in consumer.consume(10_000, 0.2):
            key: Any = record.topic(), record.partition()
            error = record.error()
            if error is None:
                found[*key, record.offset()] = record.value()
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(key)
    consumer.close()
    return found


def produced(node: RestoredNode, name: str, *topics: str) -> dict[tuple[str, int], int]:
    """The offsets at which a new idempotent producer learns for its records."""
    found: dict[tuple[str, int], int] = {}
    errors = []

    def done(error: KafkaError | None, record: Any) -> None:
        if error is not None:
            errors.append(str(error))
        else:
            found.setdefault((record.topic(), record.partition()), record.offset())

    producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
    for place in places(*topics):
        producer.produce(place.topic, name, "key", partition=place.partition, on_delivery=done)
    assert producer.flush(WAIT_SECONDS) == 0
    assert errors == []
    return found


def check_transactions(node: RestoredNode, golden: Path, manifest: dict[str, Any]) -> None:
    """A reader of committed records sees all of a transaction or nothing. All of those that were
    committed before the moment: but those that the manifest names as guesses."""
    seen: dict[str, int] = defaultdict(int)
    amounts = 0
    for (topic, _, _), value in consumed(node, "read_committed", "transfers", "derived").items():
        content = json.loads(value)
        seen[content["tx"]] += 1
        amounts += content["amt"] if topic == "transfers" else 0
    assert amounts == 0
    guesses = sum(each["is_guess"] for each in manifest["transactions"])
    lacking = 0
    for row in ledger(golden, "txns"):
        if row["outcome"] != "commit":
            continue
        assert seen[row["tx"]] in (0, row["records"])
        if row["end_return"] * 1000 < manifest["as_of_ms"] - MARGIN_MS:
            lacking += seen[row["tx"]] == 0
        if row["end_call"] * 1000 > manifest["as_of_ms"] + MARGIN_MS:
            assert seen[row["tx"]] == 0
    assert lacking <= guesses


def commits_at(golden: Path, manifest: dict[str, Any]) -> dict[str, dict[Place, int]]:
    """The manifest's commits of each group, which were in force at the moment by the ledger, up to
    the end of the log."""
    as_of_ms = manifest["as_of_ms"]
    rows = {(row["topic"], row["partition"]): row for row in manifest["partitions"]}
    allowed: dict[Any, set[int]] = defaultdict(set)
    for row in sorted(ledger(golden, "commits"), key=lambda row: float(row["after"])):
        key = row["group"], row["topic"], row["partition"]
        if not row.get("ok"):
            continue
        if row["after"] * 1000 <= as_of_ms - MARGIN_MS:
            allowed[key] = {row["offset"]}
        elif float(row.get("call") or row["before"]) * 1000 < as_of_ms + MARGIN_MS:
            allowed[key].add(row["offset"])
    found: dict[str, dict[Place, int]] = defaultdict(dict)
    for row in manifest["commits"]:
        place = row["topic"], row["partition"]
        if place[0] in PARTITIONS:
            offset, end = row["committed_offset"], rows[place]["cut_offset"]
            assert offset in {min(each, end) for each in allowed[row["group_id"], *place]}
            found[row["group_id"]][place] = offset
    return found
