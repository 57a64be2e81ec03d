"""Run a command; tell the most memory that one of its processes held.

    python -m tests.support.process_peak LIMIT_MIB COMMAND...

Prints JSON on stderr's last line: the exit code, and the peak in MiB. The peak is `ru_maxrss` of
wait4: resident memory of the largest process among the command and all that it waited for. No
process may have more address space than the limit, so that a test cannot take the machine down. The
command is started from this small process, for a fork counts with what its parent held.
"""

import json
import os
import resource
import subprocess
import sys
from typing import NamedTuple


class Run(NamedTuple):
    """How a command ended."""

    code: int
    peak_mib: int
    stderr: str


def peak_of(command: list[str], *, limit_mib: int = 6 * 1024) -> Run:
    """Run it in another process, its output dropped."""
    started = [sys.executable, "-S", __file__, str(limit_mib), *command]
    result = subprocess.run(
        started, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True
    )
    stderr, _, told = result.stderr.rstrip("\n").rpartition("\n")
    return Run(**json.loads(told), stderr=stderr)


def main(limit_mib: int, command: list[str]) -> None:
    """Run, and say what it took."""
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_AS, (limit_mib << 20, limit_mib << 20))
        os.execvp(command[0], command)
    _, status, usage = os.wait4(process, 0)
    told = {"code": os.waitstatus_to_exitcode(status), "peak_mib": usage.ru_maxrss // 1024}
    sys.stderr.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
