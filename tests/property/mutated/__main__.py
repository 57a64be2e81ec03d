"""Run the commands over mutated directories.

    python -m tests.property.mutated FIRST END     # the seeds from FIRST to END, END not included
    python -m tests.property.mutated SEED          # one seed again, with its directory kept

The environment variable NUMBA_BOUNDSCHECK=1 with KAFKALOG_KERNELS=compiled finds reads beyond the
ends of arrays. Exit code 1 where a seed failed.
"""

import faulthandler
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

from tests.property.mutated.runs import MOST_SECONDS, run_seed

_ROOM_BYTES = 2 * 2**30


def main(numbers: list[int]) -> int:
    """Run them; each failure is printed with its trace."""
    first, end = (numbers[0], numbers[0] + 1) if len(numbers) == 1 else numbers
    scratch = Path(tempfile.mkdtemp(prefix="kafkalog-mutated-"))
    failed = 0
    for seed in range(first, end):
        sys.stderr.write(f"\rseed {seed}, {failed} failed ")
        # Kernels hear no signal: a watchdog ends the process, and the seed is the last one told.
        faulthandler.dump_traceback_later(6 * MOST_SECONDS, exit=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        _limit_memory()
        try:
            said = run_seed(seed, scratch)
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"\nseed {seed} failed:\n{traceback.format_exc()}", flush=True)
        else:
            if len(numbers) == 1:
                print(f"\n{said}")
    faulthandler.cancel_dump_traceback_later()
    if len(numbers) == 1:
        print(f"the directory is {scratch / 'in'}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"\n{end - first} seeds, {failed} failed")
    return 1 if failed else 0


def _limit_memory() -> None:
    """Give the next directory this much more addresses than there are: what a length field asks for
    must not come true. Libraries, which commands load as they need them, and the room that Arrow
    and threads reserve without using it take 1.6 GiB of addresses by the 50th directory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _ROOM_BYTES, most))


if __name__ == "__main__":
    sys.exit(main([int(number) for number in sys.argv[1:]]))
