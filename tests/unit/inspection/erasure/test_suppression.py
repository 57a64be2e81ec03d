"""Records of erased persons left out of what older copies have. Rule: docs/erasure.md F1124."""

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.errors import OptionError
from kafkalog.format.record_batch import read_batch, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.erasure.file_search import Wanted
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.questions.restore.partitions.copied_bytes import PieceCopies
from kafkalog.questions.restore.partitions.partition_plans import Piece
from tests.support.logs.samples import batches_v2
from tests.support.messages.avro_orders import ORDERS, PERSON, write_schemas


def copied_without(suppression: Suppression, batch: bytes) -> tuple[bytes, int]:
    """What a restore copies of a batch, and how many records it leaves out."""
    with TemporaryDirectory() as directory:
        source, target = (Path(directory, name) for name in (f"{0:020d}.log", "restored"))
        source.write_bytes(batch)
        copies = PieceCopies(suppression)
        copies.copy([Piece(str(source), 0, len(batch))], str(target))
        return target.read_bytes(), copies.found.records


@given(batches_v2(7), st.data())
def test_a_batch_loses_exactly_the_records_of_a_key(
    made: tuple[bytes, list[Record], int], data: st.DataObject
) -> None:
    # F1124.
    batch, records, _ = made
    key = data.draw(st.sampled_from([record.key for record in records])) or b""
    suppression = Suppression(Wanted([Identifier(Kind.KEY, key)]))
    left, count = copied_without(suppression, batch)
    kept = [record for record in records if record.key != key]
    assert count == len(records) - len(kept)
    assert read_batch(left, 0) == kept
    if not count:
        assert left == batch


def test_headers_and_values_count_too() -> None:
    records = [
        Record(0, 1, 0, b"a", b'{"by": "Ada"}'),
        Record(1, 1, 0, b"a", b"x", (("user", b"Ada"),)),
        Record(2, 1, 0, b"a", b"x", (("user", None), ("other", b"Ada"))),
    ]
    identifiers = (
        Identifier(Kind.HEADER, b"Ada", "user"),
        Identifier(Kind.VALUE_PATH, b"Ada", "$.by"),
    )
    suppression = Suppression(Wanted(identifiers))
    left, count = copied_without(suppression, write_batch(records))
    assert (read_batch(left, 0), count) == (records[2:], 2)


def test_a_file_of_identifiers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "persons.txt"
    path.write_text("a\nb\n")
    assert len(Suppression.of_file("--suppress", str(path)).wanted.identifiers) == 2
    with pytest.raises(OptionError, match="--suppress"):
        Suppression.of_file("--suppress", str(tmp_path / "absent"))


def test_values_that_nothing_decodes_are_kept_and_counted() -> None:
    # F1124.
    values = [b'{"id": "a"}', b"\0\0\0\0\1\x02a", None, b'{"id": "b"}']
    columns = {"key": [b"k"] * 4, "value": values, "headers": [[] for _ in values]}
    records = pa.RecordBatch.from_pydict(columns, schema=record_schema(tuple(columns)))
    wanted = Wanted([Identifier(Kind.VALUE_PATH, b"a", "$.id")])
    kept, undecoded = Suppression(wanted).kept(records)
    assert kept.column("value").to_pylist() == values[1:]
    assert undecoded == 1


def test_a_task_that_gets_a_suppression_decodes_as_well(tmp_path: Path) -> None:
    # F1124, F1262: Spark pickles it.
    (tmp_path / "person").write_text(PERSON)
    write_schemas(tmp_path / "logs")
    given = Suppression.of_file("--suppress", str(tmp_path / "person"))
    sent = pickle.loads(pickle.dumps(given.decoding([str(tmp_path / "logs")])))
    records = [Record(offset, 1, 0, b"k", value) for offset, value in enumerate(ORDERS)]
    left, count = copied_without(sent, write_batch(records))
    assert (read_batch(left, 0), count) == (records[1:], 1)
