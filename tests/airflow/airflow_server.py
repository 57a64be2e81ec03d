"""A real Airflow on loopback: its API server, scheduler and DAG processor, with SQLite."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

from tests.support.free_ports import free_ports
from tests.support.repository import ROOT

AIRFLOW = ROOT / "build" / "airflow" / "bin"
DAGS = ROOT / "examples" / "airflow" / "dags"
_START_TIMEOUT_SECONDS = 180
# Two runs at once took eight minutes on two cores that six other sessions tested on.
_RUN_TIMEOUT_SECONDS = 1200
_STOP_TIMEOUT_SECONDS = 30
_POLL_SECONDS = 1.0
_ENDED = ("success", "failed")


class AirflowError(RuntimeError):
    """An Airflow that did not start or did not answer, with the end of what it said."""


def airflow_settings(home: Path, port: int) -> dict[str, str]:
    """Airflow's own settings, as environment variables."""
    place = f"http://127.0.0.1:{port}"
    settings: dict[str, dict[str, object]] = {
        "core": {
            "dags_folder": DAGS,
            "load_examples": False,
            "execution_api_server_url": f"{place}/execution/",
            "simple_auth_manager_all_admins": True,
            "parallelism": 2,
        },
        "api": {"host": "127.0.0.1", "port": port, "base_url": place, "workers": 1},
        "api_auth": {"jwt_secret": "only-for-tests-" * 4},
        # What runs is what a test asks for.
        "scheduler": {"use_job_schedule": False},
        "usage_data_collection": {"enabled": False},
    }
    flat = {
        f"AIRFLOW__{section.upper()}__{key.upper()}": str(value)
        for section, values in settings.items()
        for key, value in values.items()
    }
    return {**flat, "AIRFLOW_HOME": str(home)}


class Airflow:
    """A running Airflow, asked by its REST API."""

    def __init__(self, port: int, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._place = f"http://127.0.0.1:{port}"
        self._token = ""

    def ask(self, method: str, path: str, content: object = None) -> Any:
        """The answer to a request. Raises AirflowError with what the server said."""
        request = urllib.request.Request(
            f"{self._place}{path}",
            method=method,
            data=None if content is None else json.dumps(content).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            raise AirflowError(f"{method} {path}: {error.code}: {said[:2000]}") from error

    def wait_until_it_serves(self, dags: int) -> None:
        """Return when the server answers and knows so many DAGs."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                if not self._token:
                    self._token = self.ask("GET", "/auth/token")["access_token"]
                if self.ask("GET", "/api/v2/dags")["total_entries"] >= dags:
                    return
            except (URLError, ConnectionError):
                pass
            time.sleep(_POLL_SECONDS)
        raise AirflowError(f"no Airflow with {dags} DAGs within {_START_TIMEOUT_SECONDS} s")

    def set_variable(self, key: str, value: Mapping[str, object]) -> None:
        content = {"key": key, "value": json.dumps(value)}
        known = {each["key"] for each in self.ask("GET", "/api/v2/variables")["variables"]}
        if key in known:
            self.ask("PATCH", f"/api/v2/variables/{key}", content)
        else:
            self.ask("POST", "/api/v2/variables", content)

    def unpause(self, dag: str) -> None:
        self.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str, start: str, end: str, **params: object) -> str:
        """Begin a run of an interval, with parameters; its id."""
        interval = {"data_interval_start": start, "data_interval_end": end, "logical_date": start}
        request = {**interval, "conf": params}
        run_id: str = self.ask("POST", f"/api/v2/dags/{dag}/dagRuns", request)["dag_run_id"]
        return run_id

    def backfill(self, dag: str, start: str, end: str, *, runs: int) -> list[str]:
        """Begin the runs of all intervals that begin between; their ids once there are so many."""
        # The server's own request for it does not go with SQLite.
        command = ["backfill", "create", "--dag-id", dag, "--from-date", start, "--to-date", end]
        self._run([*command, "--reprocess-behavior", "completed"])

        def found() -> list[str] | None:
            listed = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns?run_type=backfill")["dag_runs"]
            return [run["dag_run_id"] for run in listed] if len(listed) >= runs else None

        return self._waited(found, f"{runs} backfill runs of {dag}")

    def _run(self, arguments: list[str]) -> None:
        done = subprocess.run(
            [str(AIRFLOW / "airflow"), *arguments],
            env=dict(self._environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AirflowError(f"airflow {' '.join(arguments)}:\n{done.stderr[-3000:]}")

    def ended(self, dag: str, run_id: str) -> str:
        """How a run has ended, once it has."""

        def state() -> str | None:
            told = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}")["state"]
            return told if told in _ENDED else None

        return self._waited(state, f"the end of {dag} {run_id}")

    def tasks(self, dag: str, run_id: str) -> dict[str, tuple[str, int]]:
        """State and number of tries of each task."""
        found = self.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances")
        return {
            each["task_id"]: (each["state"], each["try_number"]) for each in found["task_instances"]
        }

    def task_reaches(self, dag: str, run_id: str, task: str, state: str) -> None:
        """Return when a task is in a state."""

        def there() -> bool | None:
            found = self.tasks(dag, run_id).get(task)
            return True if found is not None and found[0] == state else None

        self._waited(there, f"{dag} {task} {state}")

    def log(self, dag: str, run_id: str, task: str, attempt: int = 1) -> str:
        """What a task has logged."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/logs/{attempt}"
        return json.dumps(self.ask("GET", f"{path}?full_content=true"))

    def _waited(self, look: Any, what: str) -> Any:
        deadline = time.monotonic() + _RUN_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            time.sleep(_POLL_SECONDS)
        raise AirflowError(f"{what} did not come within {_RUN_TIMEOUT_SECONDS} s")


@contextmanager
def running_airflow(home: Path, variables: Mapping[str, str]) -> Iterator[Airflow]:
    """An Airflow in a new directory; `variables` are the environment that tasks get as well.
    Nothing of it is left running."""
    home.mkdir(parents=True)
    (port,) = free_ports(1)
    path = os.pathsep.join((str(AIRFLOW), variables.get("PATH", ""), os.environ["PATH"]))
    environment = {**os.environ, **variables, **airflow_settings(home, port), "PATH": path}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    migrate = [str(AIRFLOW / "airflow"), "db", "migrate"]
    subprocess.run(migrate, env=environment, check=True, capture_output=True)
    commands = {
        "api-server": ["--host", "127.0.0.1", "--port", str(port)],
        # Its own server of logs would listen on all interfaces.
        "scheduler": ["--skip-serve-logs"],
        "dag-processor": [],
    }
    started = [_start(home, environment, name, arguments) for name, arguments in commands.items()]
    try:
        airflow = Airflow(port, environment)
        airflow.wait_until_it_serves(dags=len(list(DAGS.glob("*.py"))) - 1)
        yield airflow
    finally:
        for process in reversed(started):
            _end(process)


def _start(
    home: Path, environment: Mapping[str, str], name: str, arguments: list[str]
) -> subprocess.Popen[bytes]:
    with (home / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(AIRFLOW / "airflow"), name, *arguments],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Its own group, so that what it starts ends with it.
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_STOP_TIMEOUT_SECONDS)
