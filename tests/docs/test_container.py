"""The recipe of the container image names what there is: a wheel, modules, versions."""

import re
import tomllib
from importlib.util import find_spec

from tests.support.repository import ROOT

RECIPE = (ROOT / "examples" / "container" / "Dockerfile").read_text()


def test_the_image_has_the_spark_and_the_pandas_that_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["optional-dependencies"]["spark"]
    (spark,) = re.findall(r"^FROM apache/spark:([\d.]+)-python3$", RECIPE, re.MULTILINE)
    (pandas,) = re.findall(r"'(pandas[^']+)'", RECIPE)
    assert {f"pyspark=={spark}", pandas} <= set(needed)


def test_each_line_is_an_instruction_and_the_last_user_is_not_root() -> None:
    lines = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", RECIPE, flags=re.MULTILINE)).splitlines()
    assert {line.split()[0] for line in lines} <= {"FROM", "USER", "COPY", "RUN", "ENV"}
    assert [line for line in lines if line.startswith("USER")][-1] == "USER spark"


def test_the_modules_that_it_runs_are_there() -> None:
    modules = re.findall(r"python3 -m ([\w.]+)", RECIPE)
    assert modules and all(find_spec(name) for name in modules)
