"""Log directories as they were before a real broker started on them, and what it did to them.

The cases share most of their files: data/startup.logs.tar.xz has each content once.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.repository import Unpack

# A moment after all cases were written, and before a limit in time is over.
STARTED_AT = "2026-11-25T20:00:00Z"
# As whom the broker ran where owners and modes matter.
OTHER_USER = 65534


@dataclass(frozen=True)
class StartupCase:
    """The input's files by path: the name of the content, the size, the mode and the owner; and
    what the broker did. Contents lack the zeros at their end."""

    name: str
    contents: Path
    files: dict[str, tuple[str | None, int, str, int]]
    outcome: dict[str, Any]

    @property
    def kafka_version(self) -> str:
        """The version that was started."""
        return str(self.outcome["kafka_version"])

    @property
    def runs_as_other(self) -> bool:
        """Whether the broker ran as another user than the owner of a file."""
        return self.outcome["runs_as_uid"] != 0

    def made_in(self, folder: Path) -> Path:
        """Make the input in a folder. Who owns a file cannot be set by everybody: what belonged to
        the broker's user is open to all, what was another's is closed to others."""
        for path, (content, size, _, _) in self.files.items():
            target = folder / path
            if content is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.write((self.contents / content).read_bytes())
                file.truncate(size)
        if self.runs_as_other:
            for path, (_, _, mode, owner) in reversed(self.files.items()):
                is_own = owner == self.outcome["runs_as_uid"]
                bits = int(mode, 8)
                (folder / path).chmod(bits | bits >> 6 if is_own else bits)
        return folder


def startup_cases(unpacked: Unpack) -> dict[str, StartupCase]:
    """All cases by name."""
    folder = unpacked("startup.logs")
    cases = json.loads((folder / "cases.json").read_text())
    return {
        name: StartupCase(name, folder / "contents", each["input"], each["outcome"])
        for name, each in cases.items()
    }


def startup_case_names() -> list[str]:
    """The names of all cases, for parameters of tests."""
    return (Path(__file__).with_name("startup_cases.txt")).read_text().split()
