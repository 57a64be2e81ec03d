"""`kafkalog serve` against a client of others: librdkafka gets what the files hold."""

import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from kafkalog import serve
from kafkalog.format.faults import Fault, Severity
from tests.support.free_ports import free_ports
from tests.support.golden.damaged_variants import FOUND
from tests.support.golden.fixture_sets import UNCLEAN_VARIANTS
from tests.support.serve.clients import records_of_confluent_kafka, records_of_view
from tests.support.serve.served_sets import LEVELS, SETS, Unpacked, log_dirs, served_paths

# Streams of several gzip members and the like, which Java's consumer reads and librdkafka does not.
UNREAD_BY_LIBRDKAFKA = ("shop.raw", "zk.raw")
# Checksums are right, records are not: without --deep clients get these batches.
ONLY_DEEP = {
    name
    for name, found in FOUND.items()
    if any(kind in ("codec", "record_count", "records", "compression") for kind, _ in found)
}

# Only what hides records is a gap.
LEFT_OUT = {fault.label for fault in Fault if fault.severity is Severity.ERROR}
IN_SHORT = (
    *("bitflip-payload-first-segment", "zero-hole", "length-huge", "offsets-go-back"),
    *("varint-broken-valid-crc", "compressed-bitflip"),
)


@pytest.mark.parametrize("name", SETS)
def test_librdkafka_gets_the_rows_of_view_records(unpacked: Unpacked, name: str) -> None:
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            expected = [
                row for row in records_of_view(paths, level) if row[0] not in UNREAD_BY_LIBRDKAFKA
            ]
            found = records_of_confluent_kafka(
                running.bootstrap_servers, level, UNREAD_BY_LIBRDKAFKA
            )
            assert found == expected
            assert found
        assert running.gaps == []


@pytest.mark.parametrize(
    "name",
    [
        name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.deep)
        for name in UNCLEAN_VARIANTS
    ],
)
def test_damage_is_a_gap_that_clients_pass_over(unpacked: Unpacked, name: str) -> None:
    (path,) = log_dirs(unpacked("unclean.logs") / "variants" / name)
    with serve(path, deep=name in ONLY_DEEP) as running:
        found = records_of_confluent_kafka(running.bootstrap_servers, "read_uncommitted")
        gaps = running.gaps
    assert found == records_of_view([path], "read_uncommitted")
    # What a broker leaves that stops while writing does not count as damage.
    tail = ("truncated", "zeros") if name.startswith(("truncated-", "zeroed-")) else ()
    assert [place(gap) for gap in gaps] == [
        (kind, position)
        for kind, position in FOUND.get(name, ())
        if kind in LEFT_OUT and kind not in tail
    ]


def place(gap: str) -> tuple[str, int]:
    """Kind and position of the damage in a line about a gap."""
    found = re.fullmatch(r".*: position (\d+), .* from offset \d+: (\w+): .*; left out", gap)
    assert found is not None, gap
    return found[2], int(found[1])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_serves_until_a_signal_and_names_the_gaps(
    unpacked: Unpacked, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (path,) = log_dirs(unpacked("unclean.logs") / "variants" / "bitflip-payload-first-segment")
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "kafkalog", "serve", path, "--listen", "127.0.0.1:0"]
    (metrics,) = free_ports(1)
    command += ["--ready-file", str(ready), "--metrics", f"127.0.0.1:{metrics}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.05)
        found = records_of_confluent_kafka(ready.read_text().strip(), "read_uncommitted")
        assert found == records_of_view([path], "read_uncommitted")
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics") as page:
            assert "kafkalog_serve_gaps_total 1\n" in page.read().decode()
        process.send_signal(number)
        _, said = process.communicate(timeout=10)
        assert process.returncode == code
    assert not ready.exists()
    last = said.splitlines()[-1]
    assert place(last) == ("checksum", FOUND["bitflip-payload-first-segment"][0][1])
