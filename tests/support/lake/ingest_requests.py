"""A request for every record, for tests of ingests and exports."""

from kafkalog.views.options.ingest_request import IngestRequest

EVERY_RECORD = IngestRequest(
    topics=(),
    topic_pattern=None,
    isolation_level="read_committed",
    stop_at="highWatermark",
    from_ms=None,
    until_ms=None,
    offsets=(),
    full_refresh=False,
    starting_offsets_out=None,
)
