"""A process of a command does without pandas, which is not required but for Spark.

pyarrow imports it the first time that it is given a value of Python, or asked for one, in each
process that reads: 0.3 s of a processor and 40 MiB, for types that no command has.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "pandas"


class _WithoutPandas:
    """The first to be asked where a module is: says that pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, so that others are asked. Raises ModuleNotFoundError for pandas."""
        if name == _NAME:
            raise ModuleNotFoundError(f"no command needs {_NAME}", name=name)
        return None


def keep_pandas_away() -> None:
    """Let this process, and its forks, do as where pandas is not installed."""
    sys.meta_path.insert(0, _WithoutPandas())


def let_pandas_in() -> None:
    """Let what needs pandas import it from now on: Spark. Too late once pyarrow has asked for it,
    which remembers the answer."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _WithoutPandas)]
