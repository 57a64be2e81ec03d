"""The images of examples/container, built for real, on a Debian of its packages.

A registry's image is the same Debian; no test fetches one.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import ROOT

NEEDED = ("buildah", "mmdebstrap")
MISSING = [name for name in NEEDED if shutil.which(name) is None]

pytestmark = [
    pytest.mark.deep,
    pytest.mark.timeout(3600),  # it fetches Spark and Java
    pytest.mark.skipif(os.geteuid() != 0, reason="building images needs root here"),
    pytest.mark.skipif(
        bool(MISSING), reason=f"apt-get install {' '.join(MISSING)} to build the container images"
    ),
]

BASE = "localhost/base"
OWN_AUTHORITIES = Path("/usr/local/share/ca-certificates")
ON_THIS_MACHINE = Path("/etc/pip.conf")
DELTA = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Images:
    """A storage of images of its own, and the images that are built into it."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._storage = ["--root", str(folder / "root"), "--runroot", str(folder / "run")]
        self._context = folder / "context"
        (self._context / "dist").mkdir(parents=True)
        shutil.copy(wheel, self._context / "dist")
        shutil.copytree(ROOT / "examples" / "container", self._context / "examples" / "container")
        archive = folder / "base.tar"
        hook = (
            f'cp {OWN_AUTHORITIES}/*.crt "$1{OWN_AUTHORITIES}"; chroot "$1" update-ca-certificates'
        )
        hooks = [f"--customize-hook={hook}"] if list(OWN_AUTHORITIES.glob("*.crt")) else []
        _run(
            "mmdebstrap",
            "--variant=minbase",
            "--include=ca-certificates",
            *hooks,
            "bookworm",
            archive,
        )
        container = self._buildah("from", "scratch").strip()
        self._buildah("add", container, archive, "/")
        self._buildah("commit", "--rm", container, BASE)
        archive.unlink()

    def build(self, target: str) -> str:
        """Return the image of a stage."""
        mine, recipe = ON_THIS_MACHINE, self._context / "examples" / "container" / "Dockerfile"
        pip = [f"--volume={mine}:{mine}:ro"] if mine.exists() else []
        how = ["--isolation=chroot", "--layers", f"--build-arg=BASE={BASE}", *pip]
        what = [f"--file={recipe}", f"--target={target}", f"--tag={target}", str(self._context)]
        self._buildah("bud", *how, *what)
        return f"localhost/{target}"

    def run(self, image: str, user: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the image, with the examples in /logs."""
        container = self._buildah("from", "--pull-never", image).strip()
        place = [f"--volume={ROOT / 'examples'}:/logs:ro", f"--user={user}"]
        local = [
            "--env=SPARK_LOCAL_HOSTNAME=localhost",
            "--env=SPARK_DRIVER_BIND_ADDRESS=127.0.0.1",
        ]
        arguments = ["run", "--isolation=chroot", *place, *local, container, "--", *command]
        done = subprocess.run(
            ["buildah", *self._storage, *arguments], capture_output=True, text=True, check=False
        )
        self._buildah("rm", container)
        return done

    def _buildah(self, *arguments: str | Path) -> str:
        return _run("buildah", *self._storage, *arguments)


def _run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def images(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    folder = tmp_path_factory.mktemp("images")
    yield Images(folder, wheel)
    shutil.rmtree(folder)


def test_the_image_of_a_brokers_host_answers_any_user_from_kept_kernels(images: Images) -> None:
    done = images.run(images.build("command"), "12345", "kafkalog", "check", "/logs/shop-week")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith("sound: checked 14 segments of 5 partitions")


def test_the_image_of_spark_runs_a_job_as_kubernetes_starts_its_driver(images: Images) -> None:
    """Into Delta, as a user id without a name."""
    settings = [word for key, value in DELTA.items() for word in ("--conf", f"{key}={value}")]
    job = "local:///opt/spark/jobs/validate_checksums.py"
    arguments = [job, "/logs/log-dirs/damaged", "--output-dir", "/tmp/tables"]
    driver = ["/opt/entrypoint.sh", "driver", *settings, *arguments]
    done = images.run(images.build("spark"), "998877:0", *driver)
    assert done.returncode == 0, done.stderr
    assert "DAMAGED: 3 faults in 2 segments, 9,533 bytes faulty" in done.stdout
    assert "tables: /tmp/tables/checksum_report /tmp/tables/faults" in done.stdout
