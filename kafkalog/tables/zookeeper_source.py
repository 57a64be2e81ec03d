"""The views of ZooKeeper's files as Arrow: those of Spark's `format("zookeeper")`.

Rule: docs/sql.md F1321.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from kafkalog.log_lines import logger
from kafkalog.storage.files.file_access import FileAccess, use_file_access
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.storage_settings import PREFIX as STORAGE_PREFIX
from kafkalog.tables.filters import Filter
from kafkalog.tables.view_source import table_schema
from kafkalog.views.options.option_values import OptionValues
from kafkalog.views.options.zookeeper.zookeeper_options import (
    ZOOKEEPER_VIEW_TABLES,
    ZookeeperOptions,
    read_zookeeper_options,
)
from kafkalog.views.reading.zookeeper_reading import read_data_dir
from kafkalog.zookeeper.data_dir import find_data_dirs, is_of_zookeeper

_VIEWS = {table: view for view, table in ZOOKEEPER_VIEW_TABLES.items()}
ZOOKEEPER_TABLES = tuple(sorted(_VIEWS))
# What both sources have under other names.
_NAMES = {"asOf": "timestampAsOf"}
_SHARED = ("asOf", "mode")
_logger = logger(__name__)


@dataclass(frozen=True, slots=True)
class ZookeeperSource:
    """A table of the data directories under paths."""

    table: str
    options: ZookeeperOptions

    @classmethod
    def of(cls, paths: Sequence[str], table: str, given: Mapping[str, str]) -> ZookeeperSource:
        """Return the source with options of `format("zookeeper")`, or those of the same meaning
        that logs have. Raises OptionError."""
        texts = {_NAMES.get(name, name): text for name, text in given.items()}
        places = {"paths": json.dumps(list(paths)), "view": _VIEWS[table].value}
        options = read_zookeeper_options({**texts, **places})
        if options.without_effect:
            _logger.warning("options without effect here: %s", ", ".join(options.without_effect))
        return cls(table, options)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, or those of option `columns`. Raises OptionError for one that
        the table does not have."""
        return table_schema(self.table, self.options.columns)

    def refuse_early(self) -> None:
        """Raise what options and names of files show: OptionError, LogDirError."""
        _ = self.schema
        use_file_access(self.options.file_access)
        find_data_dirs(self.options.paths)

    def batches(self, columns: Sequence[str], given: Filter) -> Iterator[pa.RecordBatch]:
        """Yield these columns of the rows that pass the filter, one data directory after the
        other."""
        use_file_access(self.options.file_access)
        names = tuple(dict.fromkeys((*columns, *given.columns)))
        for data_dir in find_data_dirs(self.options.paths):
            for batch in read_data_dir(data_dir, self.options, names):
                yield from given.rows(batch, columns)


def _is_storage(name: str) -> bool:
    return name.lower().startswith(STORAGE_PREFIX)


class Places(NamedTuple):
    """The paths of ZooKeeper's files, and those of log directories."""

    zookeeper: Sequence[str]
    logs: Sequence[str]


def shared_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return those of the options of logs that ZooKeeper's files have too, but for columns."""
    return {name: text for name, text in given.items() if name in _SHARED or _is_storage(name)}


def divided_paths(patterns: Sequence[str], given: Mapping[str, str]) -> Places:
    """Return the paths by what is there, read with the options about storage; globs with both are
    resolved."""
    settings = {name: text for name, text in given.items() if _is_storage(name)}
    use_file_access(FileAccess(storage=OptionValues(settings, ()).storage()))
    zookeeper: list[str] = []
    others: list[str] = []
    for pattern in patterns:
        paths = matching_paths(pattern)
        of_zookeeper = [path for path in paths if is_of_zookeeper([path])]
        zookeeper += of_zookeeper
        if of_zookeeper:
            others += [path for path in paths if path not in of_zookeeper]
        else:
            others.append(pattern)
    return Places(zookeeper, others)
