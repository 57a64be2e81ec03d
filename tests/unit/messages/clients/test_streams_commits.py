"""Metadata that Kafka Streams commits, as its classes of version 4.3.1 encoded them (F1254)."""

import pytest

from kafkalog.messages.clients.streams_commits import StreamsCommit, read_streams_commit


@pytest.mark.parametrize(
    ("metadata", "time_ms", "processors"),
    [
        # new TopicPartitionMetadata(time, processors).encode()
        ("Av//////////", None, {}),
        ("AgAAAYvP5Wh7", 1_700_000_000_123, {}),
        (
            "AgAAAYvP5Wh7AAAAAgAAABxLU1RSRUFNLUFHR1JFR0FURS0wMDAwMDAwMDAzAAABi8/laAAAAAACw6n/////"
            "/////w==",
            1_700_000_000_123,
            {"KSTREAM-AGGREGATE-0000000003": 1_700_000_000_000, "é": -1},
        ),
        # Version 1, before Kafka 3.5, has the time alone.
        ("AQAAAYvP5Wh7", 1_700_000_000_123, {}),
    ],
)
def test_times_are_those_that_streams_encoded(
    metadata: str, time_ms: int | None, processors: dict[str, int]
) -> None:
    # F1254
    assert read_streams_commit(metadata) == StreamsCommit(time_ms, processors)


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, "", "read by worker 7", "AAAA", "Ag==", "AwAAAYvP5Wh7", "Av/////////+"),
        # Bytes after the time of version 1, a name that is cut, and a count without its names.
        *("AQAAAYvP5Wh7AAAAAA==", "AgAAAYvP5Wh7AAAAAQAAAAk=", "AgAAAYvP5Wh7f////w=="),
    ],
)
def test_other_texts_are_not_of_streams(metadata: str | None) -> None:
    assert read_streams_commit(metadata) is None
