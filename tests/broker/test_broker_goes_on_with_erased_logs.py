"""A real broker goes on with directories from which `kafkalog erase` removed a person's records."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.java_tools import run_dump
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import complaints
from tests.support.free_ports import free_ports

PERSON = b"person-7"
NAME = b"Ada Person"
_LEVELS = ("read_uncommitted", "read_committed")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TOPICS = (*(f"events-{codec}" for codec in _CODECS), "moves", "state")
_SMALL = {"segment.bytes": f"{1024 * 1024}"}
_CLEANED = {
    **_SMALL,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
}
_CLEANING_SECONDS = 60


def _is_persons(row: ConsumedRow) -> bool:
    return row.key == PERSON or NAME in (row.value or b"")


@dataclass
class Producers:
    """Producers that live on while the broker is replaced, and what they were told."""

    bootstrap: str
    errors: list[str] = field(default_factory=list)
    by_topic: dict[str, Producer] = field(default_factory=dict)

    def of(self, topic: str) -> Producer:
        if topic not in self.by_topic:
            settings: dict[str, object] = {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1000,
                "compression.type": topic.removeprefix("events-") if "events" in topic else "none",
                "error_cb": lambda error: None,
            }
            if topic == "moves":
                settings["transactional.id"] = "moves"
            self.by_topic[topic] = Producer(settings)
            if topic == "moves":
                self.by_topic[topic].init_transactions(60)
        return self.by_topic[topic]

    def send(self, topic: str, pairs: list[tuple[bytes, bytes | None]]) -> None:
        """Send records as a batch or a few."""
        producer = self.of(topic)
        for key, value in pairs:
            producer.produce(topic, value, key, headers=[("n", b"1")], on_delivery=self._delivered)
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
            found.append((b"k-%d" % (number % 40), f'{{"n": {number}, "pad": "{padding}"}}'.encode()))
    return found


def _fill(producers: Producers) -> None:
    for codec in _CODECS:
        topic = f"events-{codec}"
        for first in range(0, 4000, 500):
            producers.send(topic, _records(first, 500))
        # The last batches of the producer have nothing but the person's records.
        producers.send(topic, [(PERSON, b"a"), (PERSON, b"b")])
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
    return result.exit_code, f"{result.output}{result.exception or str()}"


def _until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _CLEANING_SECONDS
    while not is_done() and time.monotonic() < deadline:
        time.sleep(0.5)


def _cleaned_to(log_dir: Path) -> int:
    path = log_dir / "cleaner-offset-checkpoint"
    text = path.read_text() if path.exists() else ""
    return read_offset_checkpoint(text).get(("state", 0), 0) if text else 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    scratch = tmp_path_factory.mktemp("erased")
    (port,) = free_ports(1)
    identifiers = scratch / "person.txt"
    identifiers.write_bytes(PERSON + b'\n{"text": "Ada Person"}\n')
    proof, target = scratch / "proof.json", scratch / "new"
    quiet = {"log.cleaner.backoff.ms": 3_600_000}
    with KafkaServer(scratch / "kafka", settings=quiet, port=port) as server:
        for topic in _TOPICS:
            server.create_topic(topic, 1, _CLEANED if topic == "state" else _SMALL)
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
            else:
                producers.send(topic, [(b"k-1", b"later"), (b"k-2", b"later")])
        continued = _consumed(server)
        _until(lambda: _cleaned_to(target) > 0)
        state = server.consume_all("state")
        said = server.log_text()
    yield Run(
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
        assert run.after[place] == [row for row in rows if not _is_persons(row)], place


def test_idempotent_and_transactional_producers_go_on(run: Run) -> None:
    # F1101: their last batches before had nothing but records that were erased.
    assert run.errors == []
    for (topic, level), rows in run.continued.items():
        earlier = run.after[topic, level]
        assert rows[: len(earlier)] == earlier
        if topic == "moves":
            assert len(rows) > len(earlier)
            continue
        last = max(row.offset for row in run.before[topic, level])
        assert [(row.offset, row.value) for row in rows[len(earlier) :]] == [
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
    by_topic = {row["topic"]: row["erased"] for row in run.proof["by_topic"]}  # type: ignore[attr-defined,index]
    for topic in _TOPICS:
        rows = run.before[topic, _LEVELS[0]]
        assert by_topic[topic] == sum(map(_is_persons, rows)), topic
