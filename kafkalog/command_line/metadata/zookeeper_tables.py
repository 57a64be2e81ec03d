"""What `kafkalog metadata` prints of a cluster that keeps its metadata in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.command_line.metadata.cluster_tables import (
    image_words,
    kind_of_rows,
    of_topics,
    refuse_unknown_topics,
    unchanged_words,
    write_changes,
    write_rows,
)
from kafkalog.command_line.terminal import print_note, print_text
from kafkalog.coordination.metadata.admin_commands import admin_commands
from kafkalog.coordination.metadata.cluster_rows import ChangeRow, change_rows
from kafkalog.coordination.metadata.image import END, START, Moment
from kafkalog.coordination.zookeeper.znode_image import NOT_KNOWN, ZNODE_KINDS, ZnodeImage
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.zookeeper.cluster_trees import newest_tree
from kafkalog.inspection.zookeeper.partition_changes import partition_changes, step_row
from kafkalog.words import time_text
from kafkalog.zookeeper.faults import ZooKeeperFinding

_PARTITION = "partition"
_CHANGE_COLUMNS = (*("zxid", "timestamp_ms", "znode", *ChangeRow._fields), *("cause", "cause_zxid"))
_TEXT_COLUMNS = ("zxid", "timestamp_ms", "kind", "name", "cause", "change")


@dataclass(frozen=True)
class ZooKeeperRequest:
    """The request: rows of a kind, None for the usual; of topics, all if none are given; as of a
    time, None for the end."""

    paths: tuple[str, ...]
    chroot: str | None
    kind: str | None
    topics: tuple[str, ...]
    time_ms: int | None
    show_secrets: bool
    table_format: str

    def write_rows(self) -> ExitCode:
        """Print the rows of a kind. Raises OptionError for what ZooKeeper does not have."""
        kind = kind_of_rows(self.kind, self.topics)
        if kind not in ZNODE_KINDS:
            raise OptionError("--by", kind, f"what ZooKeeper has: {', '.join(ZNODE_KINDS)}")
        found, summary = self._image()
        rows = found.rows(kind, show_secrets=self.show_secrets)
        write_rows(
            kind,
            of_topics(kind, rows, self.topics),
            self.table_format,
            show_secrets=self.show_secrets,
            not_known=NOT_KNOWN.get(kind, ()),
        )
        put = print_text if self.table_format == "text" else print_note
        put(summary)
        return _end(found)

    def write_commands(self) -> ExitCode:
        """Print command lines. Raises OptionError for a topic that there is not."""
        found, summary = self._image()
        print_text(f"# {summary}")
        for line in admin_commands(found.image, self.topics, show_secrets=self.show_secrets):
            print_text(line)
        return _end(found)

    def write_changes(self, first: Moment, last: Moment) -> ExitCode:
        """Print how partitions changed between two times. Raises OptionError for other kinds of
        rows, and for offsets, which ZooKeeper does not have."""
        if kind_of_rows(self.kind or _PARTITION, self.topics) != _PARTITION:
            allowed = "with --diff of ZooKeeper's files only --by partition"
            raise OptionError("--by", self.kind, allowed)
        found: list[str] = []

        def report(finding: ZooKeeperFinding) -> None:
            found.append(f"{finding.file}: position {finding.position}: {finding.detail}")

        changes = partition_changes(
            *(self.paths, self.chroot, _time_ms(first, is_first=True), _time_ms(last), report),
            lambda path, detail: found.append(f"{path}: {detail}"),
        )
        rows = [
            {**step_row(step), **row._asdict()}
            for step in changes.steps
            if not self.topics or step.change.topic in self.topics
            for row in change_rows(step.change)
        ]
        write_changes(_CHANGE_COLUMNS, _TEXT_COLUMNS, rows, self.table_format)
        if changes.is_cut and changes.span is not None:
            begin = time_text(changes.span[0])
            print_note(
                f"ZooKeeper's logs begin later than the cluster: the first change of a "
                f"partition there is of {begin}, and what changed before is not known"
            )
        if not rows and changes.span is not None:
            print_note(unchanged_words(first, changes.span[1], "change of a partition"))
        elif not rows:
            print_note("ZooKeeper's logs here have no change of a partition")
        for line in found:
            print_note(line)
        return ExitCode.UNREADABLE_INPUT if found else ExitCode.DONE

    def _image(self) -> tuple[ZnodeImage, str]:
        """Return the image, and of what it is."""
        tree = newest_tree(self.paths, (), self.chroot, self.time_ms)
        found = ZnodeImage.of(tree.facts())
        refuse_unknown_topics(self.topics, found.image)
        time = "" if self.time_ms is None else f", {time_text(self.time_ms)}"
        place = f"{tree.path}{tree.place.chroot}"
        words = image_words(found.image)
        return found, f"{place}: as of zxid {tree.tree.zxid:#x}{time}: {words}"


def _time_ms(moment: Moment, *, is_first: bool = False) -> int:
    """Return the time of a moment. Raises OptionError for an offset."""
    if moment == START and is_first:
        return -1
    if moment.end_offset != END.end_offset:
        raise OptionError("--diff", str(moment.end_offset), "times, start and end")
    return moment.time_ms


def _end(found: ZnodeImage) -> ExitCode:
    """Name what could not be read, and return the exit code."""
    for path, detail in found.unreadable:
        print_note(f"{path}: {detail}")
    return ExitCode.UNREADABLE_INPUT if found.unreadable else ExitCode.DONE
