"""Which Python plans reads and runs tasks, where the user has named none."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

# What Spark runs without PYSPARK_PYTHON: the first on the PATH, whatever runs the program.
_SPARKS_OWN_CHOICE = "python3"


def use_this_python(spark: SparkSession) -> None:
    """Have a session on this machine run the Python of this process, unless the user chose another.

    A program that is run by an environment's Python, by its path, has the libraries there only.
    """
    if is_remote() or "PYSPARK_PYTHON" in os.environ or not sys.executable:
        return
    context = spark.sparkContext
    is_chosen = context.pythonExec != _SPARKS_OWN_CHOICE or (
        context.getConf().contains("spark.pyspark.python")
    )
    if str(context.master).startswith("local") and not is_chosen:
        context.pythonExec = sys.executable
