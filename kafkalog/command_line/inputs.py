"""The logs that a command reads: those under its paths, of its topics and partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from kafkalog.errors import LogDirError, OptionError, refuse_unknown
from kafkalog.storage.partition_log import PartitionLog, bytes_in, those_of
from kafkalog.views.progress import progress_bar
from kafkalog.words import first_names

if TYPE_CHECKING:
    from kafkalog.views.engine import LocalViews


@contextmanager
def views_with_progress(
    paths: Sequence[str],
    logs: Sequence[PartitionLog],
    processes: int | None,
    label: str = "reading",
    *,
    reads: int = 1,
    selected: Sequence[PartitionLog] | None = None,
    options: Mapping[str, str | int | None] | None = None,
) -> Iterator[LocalViews]:
    """Read views of the logs under the paths, and show a progress bar meanwhile. `processes` is
    --processes. The bar expects `reads` times the bytes of the `selected` logs, or of all;
    `options` are the source's."""
    from kafkalog.views.engine import LocalViews
    from kafkalog.views.parallel import processes_for

    size = bytes_in(logs if selected is None else selected)
    with progress_bar(reads * size, label) as bar:
        yield LocalViews(paths, logs, processes_for(size, processes), options or {}, bar.update)


def logs_of_topics(
    paths: Sequence[str],
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    found: Sequence[PartitionLog] | None = None,
) -> list[PartitionLog]:
    """Return the logs under the paths, including internal topics; only those of the topics and
    partitions, if any are given. Logs a checkpoint file that cannot be read, and ignores it. Goes
    on where a partition is in two directories of one broker (F1170).
    `found` are all logs there, if they have been listed just now.

    Raises LogDirError for paths without a log, and for partitions that only checkpoints name; and
    OptionError for a topic or a partition that no log has.
    """
    if found is None:
        from kafkalog.inspection.metadata.current_topics import find_logs

        found = find_logs(paths, strict=False)
    with missing_topics_explained(paths, found, topics, partitions):
        return with_topics(found, topics, partitions)


@contextmanager
def missing_topics_explained(
    paths: Sequence[str],
    found: Sequence[PartitionLog],
    topics: Sequence[str],
    partitions: Sequence[int],
) -> Iterator[None]:
    """Add to the error about unknown topics or partitions what else the log directories have of
    them. Raises as `logs_of_topics` does."""
    try:
        yield
    except OptionError as error:
        from kafkalog.storage.log_dir.other_entries import absent_lines

        deleted = [*_deleted_lines(paths, set(topics) - {log.topic for log in found})]
        absent = [*absent_lines(paths, found, topics, partitions)]
        if absent:
            raise LogDirError("; ".join((*absent, *deleted))) from None
        if deleted:
            allowed = "; ".join((str(error.allowed), *deleted))
            raise OptionError(error.name, error.value, allowed) from None
        raise


def _deleted_lines(paths: Sequence[str], topics: Collection[str]) -> Iterator[str]:
    """Return a line for each topic that is left in directories that a broker has marked."""
    from kafkalog.storage.log_dir.deleted_logs import deleted_names
    from kafkalog.storage.log_dir.log_dir import input_entries

    directories = [
        entry.path for path in paths for entry in input_entries(path) if entry.is_directory
    ]
    for directory in directories:
        for topic, names in deleted_names(directory, topics).items():
            yield (
                f"{topic} was deleted or set aside in {directory}, where {first_names(names, 3)} "
                "is left: restore it with "
                f"kafkalog undelete {quote(directory)} --topic {topic} --to DIR"
            )


def with_topics(
    found: Sequence[PartitionLog], topics: Sequence[str], partitions: Sequence[int]
) -> list[PartitionLog]:
    """Return the logs of these topics and partitions, all if none are given. Raises OptionError for
    a topic or partition without a log."""
    if topics:
        present = {log.topic for log in found}
        refuse_unknown("--topic", topics, present)
        found = those_of(found, topics)
    if partitions:
        numbers = {log.partition for log in found}
        refuse_unknown("--partition", partitions, numbers)
        found = those_of(found, partitions=partitions)
    return list(found)
