"""What `kafkalog metadata --by feature --kafka VERSION` prints: what a version refuses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from kafkalog.command_line.answer_output import table_rows
from kafkalog.command_line.metadata.cluster_tables import Request
from kafkalog.command_line.terminal import print_note, print_text, printed_columns, write_table
from kafkalog.coordination.metadata.image import Moment
from kafkalog.coordination.metadata.release_refusals import Effect
from kafkalog.coordination.metadata.releases import known_release
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.questions.groups.coordinators import is_coordinated
from kafkalog.questions.version_change import COLUMNS, Row, is_refused, version_rows, version_words
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.engine import LocalViews
from kafkalog.views.parallel import processes_for
from kafkalog.words import first_names

# The most topics that a remark names.
_MOST_NAMED = 3


@dataclass(frozen=True)
class VersionRequest:
    """A request for what a version of Kafka refuses of a cluster."""

    cluster: Request
    kafka_version: str

    def write(self, until: Moment) -> ExitCode:
        """Print the features, as text, and what the version refuses. Raises OptionError for a
        version that is not known."""
        known_release(self.kafka_version)
        is_text = self.cluster.table_format == "text"
        columns = None if is_text else printed_columns(COLUMNS)
        replay = self.cluster.image(until)
        paths = list(self.cluster.paths)
        logs = [log for log in find_logs(paths, strict=False) if is_coordinated(log)]
        size = bytes_in(logs)
        views = LocalViews(paths, logs, processes_for(size, None))
        rows = version_rows(replay, views, self.kafka_version)
        if columns is None:
            self.cluster.write_features(replay)
            _print(rows)
        else:
            write_table(
                columns,
                table_rows(rows, columns, self.cluster.table_format),
                self.cluster.table_format,
            )
        (print_text if is_text else print_note)(version_words(rows, self.kafka_version))
        ended = self.cluster.ended(replay)
        return ExitCode.FINDINGS if ended is ExitCode.DONE and is_refused(rows) else ended


def _print(rows: list[Row]) -> None:
    """Print each in lines of its own: they are too long for a table. What many topics have is one
    remark."""
    for (effect, reason, _), same in groupby(rows, _remark):
        found = list(same)
        remedy = found[0]["remedy"]
        if remedy is None:
            print_text(f"{effect}: {reason}")
            continue
        subjects = [row["subject"] for row in found]
        print_text(f"{effect}: {first_names(subjects, _MOST_NAMED)}: {reason}")
        print_text(f"    {remedy}")


def _remark(row: Row) -> tuple[str, str, str | None]:
    """Return what rows have in common that are printed together."""
    is_remark = row["effect"] == Effect.IGNORED.value
    return row["effect"], row["reason"], None if is_remark else row["subject"]
