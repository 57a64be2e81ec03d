"""Arrow arrays made without pandas."""

import subprocess
import sys

import pyarrow as pa

from kafkalog.columns.arrays import no_rows, row_codes, scalar

# Also of many values, whose codes a product would not hold.
_CODES = """
import sys
import numpy as np
import pyarrow as pa
from kafkalog.columns.arrays import fixed_width, no_rows, row_codes, scalar, strings
names = strings(["a", "b", "a", "a"])
numbers = fixed_width(np.array([1, 1, 1, 2]), pa.int64(), np.array([False, False, False, True]))
rows = pa.table([names, numbers], names=["name", "number"])
assert row_codes(rows).tolist() == [0, 2, 0, 1]
assert len(no_rows(rows.schema)) == 0
assert numbers.fill_null(scalar(7, pa.int64())).to_pylist() == [1, 1, 1, 7]
assert "pandas" not in sys.modules
"""


def test_rows_that_are_the_same_have_one_code_and_pandas_is_not_imported() -> None:
    subprocess.run([sys.executable, "-c", _CODES], check=True)


def test_codes_of_many_columns_stay_below_the_number_of_rows() -> None:
    columns = [pa.array(range(5000)) for _ in range(8)]
    rows = pa.table(columns, names=list("abcdefgh"))
    assert row_codes(rows).tolist() == list(range(5000))
    assert row_codes(no_rows(rows.schema)).tolist() == []


def test_a_scalar_has_the_type_requested() -> None:
    assert scalar(True, pa.bool_()).equals(pa.scalar(True))
    assert scalar("a", pa.string()).equals(pa.scalar("a"))
    assert not scalar(None, pa.int64()).is_valid
