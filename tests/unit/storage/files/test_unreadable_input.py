"""What several jobs of one process could not read, in processes that they did not fork."""

import os
import subprocess
import sys

from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.unreadable_input import (
    UnreadableInput,
    add_notes,
    carried_notes,
    note_missing,
    note_unreadable,
    noted_unreadable,
    noted_unreadable_by_all,
    shared_variables,
)

_NOTE = "from kafkalog.storage.files.unreadable_input import note_unlisted as note; note({!r}, 'x')"


def note_elsewhere(path: str) -> None:
    """As a worker of Spark does it, which has the environment and nothing else."""
    environment = {**os.environ, **shared_variables()}
    subprocess.run([sys.executable, "-c", _NOTE.format(path)], env=environment, check=True)


def lines(noted: UnreadableInput) -> list[str]:
    return [line.split(" ", 1)[0] for line in noted.lines()]


def test_each_job_has_what_was_noted_since_it_began() -> None:
    with noted_unreadable_by_all() as first:
        note_elsewhere("/a")
        assert (lines(first), bool(first)) == (["/a"], True)
    with noted_unreadable_by_all() as second:
        assert (lines(second), bool(second)) == ([], False)
        assert second.exit_code(ExitCode.DONE) == ExitCode.DONE
        note_elsewhere("/b")
        assert lines(second) == ["/b"]
        assert second.exit_code(ExitCode.DONE) == ExitCode.UNREADABLE_INPUT


def test_all_jobs_of_a_process_have_the_same_environment() -> None:
    # Spark starts other Python workers for each environment, and keeps them.
    with noted_unreadable_by_all():
        first = shared_variables()
    with noted_unreadable_by_all():
        assert shared_variables() == first
    assert shared_variables() == {}


def test_the_file_is_removed_with_its_process() -> None:
    program = (
        "import os\n"
        "from kafkalog.storage.files.unreadable_input import *\n"
        "with noted_unreadable_by_all():\n"
        "    (path,) = shared_variables().values()\n"
        "    assert os.path.exists(path)\n"
        "    print(path)\n"
        "    os.fork() or exit()\n"
        "    os.wait()\n"
        "    assert os.path.exists(path)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not os.path.exists(run.stdout.split()[0])


def test_a_task_without_a_file_returns_what_it_notes() -> None:
    with carried_notes() as notes:
        note_unreadable("/a", 4096, 10, "Input/output error")
        note_missing("a tier")
    with noted_unreadable() as noted:
        assert not noted
        add_notes(notes)
        assert noted.lines() == [
            "a tier",
            "/a: bytes 4096 to 4105 cannot be read: Input/output error",
        ]


def test_a_task_that_has_a_file_returns_nothing() -> None:
    with noted_unreadable() as noted, carried_notes() as notes:
        note_unreadable("/a", 0, 10, "Input/output error")
        assert (notes, bool(noted)) == ([], True)
