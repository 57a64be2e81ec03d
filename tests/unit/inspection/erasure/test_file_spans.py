"""Ranges of files, read like a file and compared. Rule: docs/erasure.md F1264."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.inspection.erasure.file_spans import FileSpans, first_difference
from kafkalog.storage.files.files import InputFile

_DATA = bytes(range(100))


@given(st.lists(st.integers(0, 100), max_size=8), st.integers(0, 120), st.integers(0, 120))
def test_ranges_are_read_one_after_the_other(
    tmp_path_factory: object, borders: list[int], position: int, size: int
) -> None:
    path = Path(tmp_path_factory.mktemp("spans")) / "file"  # type: ignore[attr-defined]
    path.write_bytes(_DATA)
    ends = sorted(borders[: len(borders) // 2 * 2])
    spans = [*zip(ends[::2], ends[1::2], strict=True)]
    expected = b"".join(_DATA[start:end] for start, end in spans)
    with InputFile(str(path)) as file:
        found = FileSpans(file, spans)
        assert found.size == len(expected)
        assert found.read_around(position, size) == expected[position : position + size]


def test_a_copy_that_differs_is_found(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(_DATA)
    # The bytes 10 to 20 are left out; the last one is another.
    new.write_bytes(_DATA[:10] + _DATA[20:99] + b"x")
    with InputFile(str(old)) as one, InputFile(str(new)) as other:
        assert first_difference(one, other, [(0, 10, 0), (20, 99, 10)]) is None
        assert first_difference(one, other, [(0, 10, 0), (20, 100, 10)]) == 20
        assert first_difference(one, other, [(0, 11, 0)]) == 0


def test_long_ranges_are_compared_to_their_last_byte(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    data = bytes(range(256)) * 3000
    old.write_bytes(data)
    new.write_bytes(data[:-1] + b"x")
    with InputFile(str(old)) as one, InputFile(str(new)) as other:
        assert first_difference(one, other, [(0, len(data) - 1, 0)]) is None
        found = first_difference(one, other, [(0, len(data) - 1, 0), (0, len(data), 0)])
        assert found is not None
        assert len(data) - 256 * 1024 <= found < len(data)
