"""The recipe of the container images names what there is: a wheel, modules, versions, jobs."""

import re
import tomllib
from importlib.util import find_spec

from tests.support.repository import ROOT

RECIPE = (ROOT / "examples" / "container" / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
(PYTHON,) = re.findall(r"^FROM python:(\d+\.\d+)-slim", RECIPE, re.MULTILINE)


def instructions() -> list[str]:
    without_comments = re.sub(r"^#.*\n", "", RECIPE, flags=re.MULTILINE)
    return [line for line in re.sub(r"\\\n", "", without_comments).splitlines() if line]


def test_the_image_has_the_spark_and_the_pandas_that_the_package_asks_for() -> None:
    needed = PROJECT["optional-dependencies"]["spark"]
    (spark,) = re.findall(r"^FROM apache/spark:([\d.]+)-\S*-java17-", RECIPE, re.MULTILINE)
    (pandas,) = re.findall(r"'(pandas[^']+)'", RECIPE)
    assert {f"pyspark=={spark}", pandas} <= set(needed)


def test_its_python_is_one_that_the_package_runs_on() -> None:
    classifier = f"Programming Language :: Python :: {PYTHON}"
    assert classifier in PROJECT["classifiers"]


def test_each_line_is_an_instruction_and_no_image_runs_as_root() -> None:
    known = {"FROM", "USER", "COPY", "RUN", "ENV", "WORKDIR", "ENTRYPOINT"}
    assert {line.split()[0] for line in instructions()} <= known
    stages = "\n".join(instructions()).split("FROM ")[1:]
    users = [re.findall(r"^USER (\w+)$", stage, re.MULTILINE) for stage in stages]
    assert [each[-1:] for each in users] == [[], ["nobody"], ["spark"]]


def test_stages_copy_from_stages_that_there_are() -> None:
    named = re.findall(r"^FROM \S+ AS (\S+)$", RECIPE, re.MULTILINE)
    assert set(re.findall(r"--from=(\S+)", RECIPE)) <= set(named)
    targets = re.findall(r"--target (\S+)", RECIPE)
    assert targets and set(targets) <= set(named)


def test_the_modules_that_it_runs_are_there() -> None:
    modules = re.findall(r"python3 -m ([\w.]+)", RECIPE)
    assert modules and all(find_spec(name) for name in modules)


def test_the_job_that_operations_submits_is_in_the_image() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    (place,) = re.findall(r"local://(/\S+)/kafkalog/jobs/(?:\w+)\.py", page)
    assert place == f"/usr/local/lib/python{PYTHON}/site-packages"
    (job,) = re.findall(r"local:///\S+/jobs/(\w+\.py)", page)
    assert (ROOT / "jobs" / job).exists()
