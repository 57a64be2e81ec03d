"""What one task of an export does: it reads segments and writes files, and reports the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_fields, arrow_schema
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.erasure.suppression import Suppression, undecoded_words
from kafkalog.lake.decoded_columns import Field, with_columns_of
from kafkalog.lake.file_rows import rows_of_each_partition
from kafkalog.lake.layout import RECORDS, TableOutput
from kafkalog.lake.record_rows import RECORD_COLUMNS, RecordRows
from kafkalog.lake.table_writer import TableWriter
from kafkalog.lake.written_file import WrittenFile
from kafkalog.log_lines import logger
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.reading import read_segment
from kafkalog.words import counted

# Called with the number of rows of each Arrow batch.
OnRows = Callable[[int], None]
# Called with a topic, and with how many records of it were left out of a segment, and how many
# values were kept because nothing decodes them.
OnSuppressed = Callable[[str, int, int], None]

_logger = logger(__name__)


@dataclass(frozen=True, slots=True)
class ExportTask:
    """What all tasks of an export have in common: how to read, the table of each topic, and the
    columns that decoding gives; a table can have more (`TableOutput.decoded`); and what is left
    out."""

    options: ReadOptions
    outputs: Mapping[str, TableOutput]
    decoded: tuple[Field, ...] = ()
    suppression: Suppression | None = None

    def written_files(
        self,
        reads: Sequence[SegmentRead],
        on_rows: OnRows | None = None,
        on_suppressed: OnSuppressed | None = None,
    ) -> list[WrittenFile]:
        """Write the records of some segments and return the new files. What is left out of them by
        `suppression` is logged, or counted by `on_suppressed`.

        A failed attempt removes what it wrote; that of a killed one stays, and no commit names it.
        Raises what reading raises, and OSError where a file cannot be written.
        """
        use_file_access(self.options.file_access)
        rows = (
            ((read.topic or "", read.partition or 0), batch)
            for read in reads
            for batch in self._rows(read, on_suppressed or _log_suppressed)
        )
        return self._written(rows, on_rows)

    def written_rows(
        self, batches: Iterable[pa.RecordBatch], on_rows: OnRows | None = None
    ) -> list[WrittenFile]:
        """Write rows that `rows` has given and that have been decoded since, and return the new
        files. Raises as `written_files` does."""
        use_file_access(self.options.file_access)
        schema = pa.schema([*arrow_schema(RECORDS), *arrow_fields(self.decoded)])
        rows = (each for batch in batches for each in rows_of_each_partition(batch.cast(schema)))
        return self._written(rows, on_rows)

    def _written(
        self, rows: Iterable[tuple[TopicPartition, pa.RecordBatch]], on_rows: OnRows | None = None
    ) -> list[WrittenFile]:
        _return_unused_memory()
        files: list[WrittenFile] = []
        writers: list[TableWriter] = []
        try:
            # One table after another, so that the rows of one only wait in memory.
            for output, some in groupby(rows, lambda each: self.outputs[each[0][0]]):
                writers.append(TableWriter(output))
                for key, batch in some:
                    writers[-1].write(with_columns_of(batch, output.decoded), key)
                    if on_rows is not None:
                        on_rows(len(batch))
                files += writers[-1].close()
        except BaseException:
            for writer in writers:
                writer.abort()
            raise
        return files

    def rows(
        self, reads: Sequence[SegmentRead], on_suppressed: OnSuppressed | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of some segments as rows of table `ingested_records`."""
        use_file_access(self.options.file_access)
        for read in reads:
            yield from self._rows(read, on_suppressed or _log_suppressed)

    def _rows(self, read: SegmentRead, on_suppressed: OnSuppressed) -> Iterator[pa.RecordBatch]:
        topic = read.topic or ""
        rows = RecordRows(
            {
                "topic": topic,
                "partition": read.partition or 0,
                "cluster_id": read.cluster_id,
                "input_path": read.input_path,
                "ingest_run": self.outputs[topic].ingest_run,
            }
        )
        suppressed = undecoded = 0
        for records in read_segment(read, self.options, RECORD_COLUMNS):
            kept, unknown = (
                (records, 0) if self.suppression is None else self.suppression.kept(records)
            )
            suppressed += len(records) - len(kept)
            undecoded += unknown
            yield rows.of(kept)
        if suppressed or undecoded:
            on_suppressed(topic, suppressed, undecoded)


def _log_suppressed(topic: str, records: int, undecoded: int) -> None:
    for line in suppressed_lines(topic, records, undecoded):
        _logger.warning("%s", line)


def suppressed_lines(topic: str, records: int, undecoded: int) -> Iterator[str]:
    """Yield how many records of a topic are left out as those of erased persons, and how many
    values are kept because nothing decodes them."""
    if records:
        yield f"{topic}: {counted(records, 'record')} suppressed"
    if undecoded:
        yield undecoded_words(topic, undecoded)


def _return_unused_memory() -> None:
    """Make Arrow allocate by jemalloc, where it has it: mimalloc, its usual allocator, keeps 80 MiB
    more of a worker's memory, at the same speed (docs/benchmarks.md)."""
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
