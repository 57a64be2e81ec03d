"""A real broker goes on with directories from which `kafkalog erase` removed a person's records."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.java_tools import run_dump
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import complaints
from tests.support.free_ports import free_ports

pytestmark = pytest.mark.deep

PERSON = b"person-7"
NAME = b"Ada Person"
_LEVELS = ("read_uncommitted", "read_committed")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TOPICS = ("events", "moves", "state")
_SMALL = {"segment.bytes": f"{1024 * 1024}"}
_CLEANED = {
    **_SMALL,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": f"{2**62}",
}
_CLEANING_SECONDS = 60


def _is_persons(row: ConsumedRow) -> bool:
    return row.key == PERSON or NAME in (row.value or b"")


def _place(row: ConsumedRow) -> tuple[int, int]:
    return row.partition, row.offset


@dataclass
class Producers:
    """Producers that live on while the broker is replaced, and what the broker answered."""

    bootstrap: str
    errors: list[str] = field(default_factory=list)
    by_place: dict[tuple[str, int], Producer] = field(default_factory=dict)

    def of(self, topic: str, partition: int = 0) -> Producer:
        """One for each partition: those of the topic of events have a codec each."""
        place = topic, partition
        if place not in self.by_place:
            settings: dict[str, object] = {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1000,
                "compression.type": _CODECS[partition],
                "error_cb": lambda error: None,
            }
            if topic == "moves":
                settings["transactional.id"] = "moves"
            self.by_place[place] = Producer(settings)
            if topic == "moves":
                self.by_place[place].init_transactions(60)
        return self.by_place[place]

    def send(
        self, topic: str, pairs: Sequence[tuple[bytes, bytes | None]], partition: int = 0
    ) -> None:
        """Send records as a batch or a few."""
        producer = self.of(topic, partition)
        for key, value in pairs:
            producer.produce(topic, value, key, partition, self._delivered, headers=[("n", b"1")])
        left = producer.flush(60)
        if left:
            self.errors.append(f"{topic}: {left} not delivered")

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self.errors.append(str(error))


@dataclass(frozen=True)
class Run:
    """What was consumed before and after, and what was said."""

    before: dict[tuple[str, str], list[ConsumedRow]]
    after: dict[tuple[str, str], list[ConsumedRow]]
    continued: dict[tuple[str, str], list[ConsumedRow]]
    while_running: tuple[int, str]
    erased_dir: Path
    errors: list[str]
    said: str
    dumped: str
    cleaned_to: int
    state_after_cleaning: list[ConsumedRow]
    proof: dict[str, object]


def _records(first: int, count: int) -> list[tuple[bytes, bytes | None]]:
    found: list[tuple[bytes, bytes | None]] = []
    for number in range(first, first + count):
        padding = f"{number:06d} " * 60
        if number % 10 == 3:
            found.append((PERSON, f'{{"n": {number}, "pad": "{padding}"}}'.encode()))
        elif number % 10 == 5:
            found.append((b"k-%d" % (number % 40), b'{"by": "Ada Person", "n": %d}' % number))
        else:
            found.append(
                (b"k-%d" % (number % 40), f'{{"n": {number}, "pad": "{padding}"}}'.encode())
            )
    return found


def _fill(producers: Producers) -> None:
    for partition in range(len(_CODECS)):
        for first in range(0, 4000, 500):
            producers.send("events", _records(first, 500), partition)
        # The last batches of the producer have nothing but the person's records.
        producers.send("events", [(PERSON, b"a"), (PERSON, b"b")], partition)
    _transactions(producers, range(30))
    for first in range(0, 4000, 500):
        producers.send("state", _records(first, 500))
    producers.send("state", [(PERSON, None)])


def _transactions(producers: Producers, numbers: range) -> None:
    moves = producers.of("moves")
    for number in numbers:
        moves.begin_transaction()
        pairs = [(PERSON, b"only")] if number % 5 == 4 else _records(number * 20, 20)
        producers.send("moves", pairs)
        if number % 3 == 2:
            moves.abort_transaction(60)
        else:
            moves.commit_transaction(60)


def _consumed(server: KafkaServer) -> dict[tuple[str, str], list[ConsumedRow]]:
    return {
        (topic, level): server.consume_all(topic, level)
        for topic in _TOPICS
        for level in (_LEVELS if topic == "moves" else _LEVELS[:1])
    }


def _erase(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, ["erase", *map(str, arguments)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def _clean_soon(bootstrap: str) -> None:
    lag = ConfigEntry("min.compaction.lag.ms", "0", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "state", incremental_configs=[lag])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(60)


def _until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _CLEANING_SECONDS
    while not is_done() and time.monotonic() < deadline:
        time.sleep(0.5)


def _cleaned_to(log_dir: Path) -> int:
    path = log_dir / "cleaner-offset-checkpoint"
    text = path.read_text() if path.exists() else ""
    return read_offset_checkpoint(text).get(("state", 0), 0) if text else 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    scratch = tmp_path_factory.mktemp("erased")
    (port,) = free_ports(1)
    identifiers = scratch / "person.txt"
    identifiers.write_bytes(PERSON + b'\n{"text": "Ada Person"}\n')
    proof, target = scratch / "proof.json", scratch / "new"
    with KafkaServer(scratch / "kafka", port=port) as server:
        for topic in _TOPICS:
            partitions = len(_CODECS) if topic == "events" else 1
            server.create_topic(topic, partitions, _CLEANED if topic == "state" else _SMALL)
        producers = Producers(server.bootstrap)
        _fill(producers)
        before = _consumed(server)
        log_dir = server.log_dir
        asked = (log_dir, "--identifiers", identifiers, "--to")
        while_running = _erase(*asked, scratch / "never")
    code, output = _erase(*asked, target, "--proof", proof)
    assert code == ExitCode.DONE, output
    dumped = run_dump(sorted(target.rglob("0*.log"))).stdout.decode("utf-8", "replace")
    with KafkaServer(scratch / "kafka", target, port=port) as server:
        after = _consumed(server)
        for topic in _TOPICS:
            if topic == "moves":
                _transactions(producers, range(30, 33))
                continue
            for partition in range(len(_CODECS) if topic == "events" else 1):
                producers.send(topic, [(b"k-1", b"later"), (b"k-2", b"later")], partition)
        continued = _consumed(server)
        _clean_soon(server.bootstrap)
        _until(lambda: _cleaned_to(target) > 0)
        state = server.consume_all("state")
        said = server.log_text()
    return Run(
        before,
        after,
        continued,
        while_running,
        target,
        producers.errors,
        said,
        dumped,
        _cleaned_to(target),
        state,
        json.loads(proof.read_text()),
    )


def test_a_running_brokers_directory_is_refused(run: Run) -> None:
    # F1116.
    code, output = run.while_running
    assert code != ExitCode.DONE
    assert "a broker runs on it" in output


def test_every_other_record_is_consumed_at_its_old_offset(run: Run) -> None:
    # F1100, F1101: in both isolation levels, of each codec, of a compacted topic too.
    for place, rows in run.before.items():
        assert any(_is_persons(row) for row in rows), place
        expected = [row for row in rows if not _is_persons(row)]
        assert sorted(run.after[place], key=_place) == sorted(expected, key=_place), place


def test_idempotent_and_transactional_producers_go_on(run: Run) -> None:
    # F1101: their last batches before had nothing but records that were erased.
    assert run.errors == []
    for (topic, level), rows in run.continued.items():
        earlier, before = run.after[topic, level], run.before[topic, level]
        assert len(rows) > len(earlier)
        for partition in {row.partition for row in rows}:
            own, past, first = (
                [row for row in each if row.partition == partition]
                for each in (rows, earlier, before)
            )
            assert own[: len(past)] == past
            if topic != "moves":
                last = max(row.offset for row in first)
                assert [(row.offset, row.value) for row in own[len(past) :]] == [
                    (last + 1, b"later"),
                    (last + 2, b"later"),
                ]


def test_the_broker_has_nothing_to_say_against_them(run: Run) -> None:
    about = [line for line in run.said.splitlines() if any(topic in line for topic in _TOPICS)]
    assert about
    assert [line for line in complaints(about) if "cleaner" not in line.lower()] == []


def test_the_cleaner_runs_over_them(run: Run) -> None:
    assert run.cleaned_to > 0
    rows = run.continued["state", _LEVELS[0]]
    assert len(run.state_after_cleaning) < len(rows)
    last = {row.key: row for row in rows}
    assert {row.key: row for row in run.state_after_cleaning} == last


def test_kafkas_own_tool_finds_nothing(run: Run) -> None:
    # F1109: decompressed, record by record.
    assert "k-1" in run.dumped
    assert PERSON.decode() not in run.dumped
    assert NAME.decode() not in run.dumped


def test_the_proof_counts_what_consumers_lack(run: Run) -> None:
    # F1117: aborted records are erased as well, so all that are read uncommitted count.
    by_topic = {row["topic"]: row["erased"] for row in run.proof["by_topic"]}  # type: ignore[attr-defined]
    for topic in _TOPICS:
        rows = run.before[topic, _LEVELS[0]]
        assert by_topic[topic] == sum(map(_is_persons, rows)), topic
