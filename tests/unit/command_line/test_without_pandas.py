"""Commands do without pandas, and Spark gets it (decision 81)."""

import subprocess
import sys

from tests.support.repository import EXAMPLES

_KEPT_AWAY = """
import sys
from kafkalog.command_line.without_pandas import keep_pandas_away, let_pandas_in
keep_pandas_away()
import pyarrow as pa
assert pa.array([1, None]).to_pylist() == [1, None]
assert "pandas" not in sys.modules
try:
    import pandas
except ModuleNotFoundError as error:
    assert error.name == "pandas"
else:
    raise AssertionError("pandas is there")
import json, colorsys  # others are found as ever
let_pandas_in()
import pandas
"""


def test_pandas_is_as_if_it_were_not_installed_until_it_is_let_in() -> None:
    subprocess.run([sys.executable, "-c", _KEPT_AWAY], check=True)


def test_no_process_of_a_command_imports_pandas() -> None:
    """Python says what it imports, in forks too."""
    command = [sys.executable, "-X", "importtime", "-m", "kafkalog"]
    paths = [str(EXAMPLES / "kafka-4.4"), str(EXAMPLES / "kafka-0.10")]
    done = subprocess.run(
        [*command, "check", *paths, "--processes", "2"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    assert "pyarrow" in imported
    # Who asks in vain has a line, too.
    assert not [name for name in imported if name.startswith("pandas.")]
