"""`kafkalog report` on files of brokers: its numbers are those of Kafka's tools. Rules:
docs/report.md F600, F602, F605, F645."""

import json
import re
import shutil
import struct
from collections import Counter
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.report.contents import Report, ReportMoment
from kafkalog.report.reading.report_reading import ReportRequest, read_report
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews
from tests.support.golden.described_groups import printed_lags
from tests.support.golden.fixture_sets import CONSUMERS, consumed
from tests.support.golden.startup_cases import STARTED_AT, startup_cases
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_BYTES, DAMAGED_FAULTS
from tests.support.repository import EXAMPLES, Unpack

AT_MS = 3_400_000_000_000


def report_of(log_dir: Path) -> Report:
    logs = find_partitions([str(log_dir)], strict=False)
    views = LocalViews([str(log_dir)], logs, 1)
    return read_report(views, ReportRequest([str(log_dir)], logs, ReportMoment(AT_MS, is_now=True)))


def test_the_page_about_a_damaged_disk(tmp_path: Path) -> None:
    arguments = ["report", str(DAMAGED), "--output-dir", str(tmp_path / "new")]
    done = CliRunner().invoke(kafkalog, [*arguments, "--fail-on-findings"])
    assert done.exit_code == ExitCode.FINDINGS
    said = done.stdout.splitlines()
    size = sum(path.stat().st_size for path in DAMAGED.glob("*/*.log"))
    assert said[1].startswith("groups, transactions and retention are judged as of ")
    assert said[2] == f"3 damaged ranges in e.w-0, 9.3 KiB of {size / 1024:.0f} KiB"
    assert round(DAMAGED_BYTES / 1024, 1) == 9.3
    assert said[-1] == f"report: {tmp_path / 'new' / 'report.html'}"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]
    text = (tmp_path / "new" / "report.html").read_text()
    told = re.findall(
        r"<b>(\w+)</b> ([0-9,]+) bytes at position ([0-9,]+) of <bdi[^>]*>(\S+)<", text
    )
    assert sorted(
        (file, int(position.replace(",", "")), int(length.replace(",", "")), kind)
        for kind, length, position, file in told
    ) == [fault[:4] for fault in DAMAGED_FAULTS]


def test_the_clusters_metadata_are_what_an_admin_client_got(unpacked: Unpack) -> None:
    admin = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())
    cluster = report_of(unpacked("kafka44.logs") / "log-dirs").cluster
    assert cluster is not None
    partitions = {topic: len(each["partitions"]) for topic, each in admin["topics"].items()}
    assert {row.topic: row.partitions for row in cluster.topics} == partitions
    configs = {row.topic: dict(row.configs) for row in cluster.topics if row.configs}
    assert configs == {
        topic: each for topic, each in admin["topic_configs_not_default"].items() if each
    }
    (broker,) = cluster.brokers
    assert (broker.broker_id, broker.replicas) == (1, sum(partitions.values()))


def test_its_numbers_are_those_of_kafkas_tools(unpacked: Unpack) -> None:
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    golden = unpacked("kafka44.golden")
    report = report_of(log_dir)
    sizes: dict[str, int] = {}
    removed = list(log_dir.glob("*/*.log.deleted"))
    for path in log_dir.glob("*/*.log"):
        if not path.parent.name.endswith("-delete"):
            topic = path.parent.name.rpartition("-")[0]
            sizes[topic] = sizes.get(topic, 0) + path.stat().st_size
    largest = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))
    assert [(row.topic, row.bytes) for row in report.storage.topics] == largest[:12]
    assert report.storage.totals.bytes == sum(sizes.values())
    assert removed
    unserved = report.storage.unserved
    assert unserved.segments == len(removed)
    assert unserved.bytes == sum(path.stat().st_size for path in removed)
    assert report.damage.totals.errors == 0
    assert report.groups is not None
    for row in report.keys.topics:
        if row.shown_topic is not None:
            received = consumed(golden, row.shown_topic, CONSUMERS["kafka44"])
            keyed = [each for each in received if each["key"] is not None]
            tombstones = [each for each in keyed if each["value"] is None]
            found = (row.records, row.keyed, row.tombstones)
            assert found == (len(received), len(keyed), len(tombstones)), row.shown_topic
            keys = Counter(each["key"] for each in keyed)
            most = [count for _, count in keys.most_common(10)]
            assert [each["count"] for each in row.top_keys] == most, row.shown_topic
    told: Counter[str] = Counter()
    for (group, _, _), lag in printed_lags(golden).items():
        told[group] += lag.lag or 0
    # Offsets without a record are lag for the tool and nothing to read.
    assert all(row.readable_records <= told[row.group_id] for row in report.groups.statuses)
    plain = "shop.g with spaces/and:ünicode"
    assert {row.group_id: row.readable_records for row in report.groups.statuses}[plain] == 1099
    assert told[plain] == 1099
    held = {(row.topic, row.partition) for row in report.transactions.holders}
    # kafka-transactions listed them as Ongoing.
    assert held == {("shop.tx", 1), ("shop.tx.out", 0), ("__consumer_offsets", 6)}


def test_the_page_denies_no_group_while_records_about_groups_are_missing(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F940
    copy = tmp_path / "logs"
    left_out = shutil.ignore_patterns("shop.[!i]*", "__transaction_state-*")
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", copy, ignore=left_out)
    for log in copy.glob("__consumer_offsets-*/*.log"):
        log.unlink()
    output = tmp_path / "page"
    done = CliRunner().invoke(kafkalog, ["report", str(copy), "--output-dir", str(output)])
    assert done.exit_code == ExitCode.UNREADABLE_INPUT
    assert "commits of groups: 455 offsets are missing: " in done.stdout
    assert "coordinators of transactions: 712 offsets are missing: " in done.stdout
    html = (output / "report.html").read_text()
    assert "No group has committed" not in html
    assert "Nothing is damaged, blocked or lagging." not in html


def test_a_past_moment_is_judged_as_groups_judges_it(tmp_path: Path) -> None:
    # F942
    moment = "2026-11-14T00:00:00Z"
    week, as_of = str(EXAMPLES.parent / "shop-week"), ("--as-of", moment)
    output = tmp_path / "page"
    arguments = ["report", week, *as_of, "--output-dir", str(output)]
    done = CliRunner().invoke(kafkalog, arguments)
    assert done.exit_code == ExitCode.DONE
    groups = CliRunner().invoke(kafkalog, ["groups", week, *as_of, "--lagging", "--format", "json"])
    (lagging,) = map(json.loads, groups.stdout.splitlines())
    told = f"group reports is {lagging['to_read']} records behind since 2026-11-13 02:00:14"
    assert told in done.stdout
    assert "billing" not in done.stdout  # it read all that was there
    page = (output / "report.html").read_text()
    # The last bar of a plot, and the room beside it, can be later; no time that is named is.
    shown = re.findall(r">(2026-11-1\d \d\d:\d\d:\d\d)<", page)
    assert max(shown) <= "2026-11-14 00:00:00"
    pointed_at = re.findall(r'"(2026-11-\d\d \d\d:\d\d:\d\d)\\u003cbr', page)
    assert max(pointed_at) == "2026-11-14 00:00:00"
    assert ">later<" in page
    batches, records, size = later_than(Path(week), 1_794_614_400_000)
    words = (
        f"{batches:,} batches of {records:,} records, {size / 2**10:.1f} KiB, of after "
        "2026-11-14 00:00:00 UTC"
    )
    assert words in done.stdout
    assert page.count(f"These figures are of the files as they are: they have {words}") == 2


def test_the_metadata_is_that_of_the_moment(unpacked: Unpack, tmp_path: Path) -> None:
    # F942. kafka-dump-log of __cluster_metadata: offset 484 makes __share_group_state at
    # 1795246884282, offset 569 removes shop.to-be-deleted at 1795246921836.
    logs = str(unpacked("kafka44.logs") / "log-dirs")

    def topics(*as_of: str) -> set[str]:
        output = tmp_path / "-".join(("page", *as_of))
        given = ["report", logs, *as_of, "--output-dir", str(output)]
        assert CliRunner().invoke(kafkalog, given).exit_code == ExitCode.DONE
        page = (output / "report.html").read_text()
        section = page[page.index('id="cluster"') :].partition("</section>")[0]
        return {"__share_group_state", "shop.to-be-deleted"} & set(
            re.findall(r">([^<]+)<", section)
        )

    assert topics() == {"__share_group_state"}
    assert topics("--as-of", "1795246884281") == {"shop.to-be-deleted"}


def later_than(log_dir: Path, at_ms: int) -> tuple[int, int, int]:
    """How many batches of records are later than a time, their records and bytes, by the layout of
    headers: docs/format.md F2."""
    found = [0, 0, 0]
    for path in log_dir.rglob("*.log"):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
            header = data[position : position + 61]
            attributes, largest_ms = struct.unpack(">h", header[21:23])[0], header[35:43]
            is_control = attributes & 0x20
            if not is_control and int.from_bytes(largest_ms, "big", signed=True) > at_ms:
                count = int.from_bytes(header[57:61], "big")
                found = [found[0] + 1, found[1] + count, found[2] + size]
            position += size
    return found[0], found[1], found[2]


def test_the_page_says_what_the_next_start_does(unpacked: Unpack, tmp_path: Path) -> None:
    # F962, as the real broker of these directories did.
    case = startup_cases(unpacked)["02f-directory-id-twice"]
    case.made_in(tmp_path / "node")
    assert not case.outcome["started"]
    log_dirs = [str(tmp_path / "node" / name) for name in ("d1", "d2")]
    arguments = ["report", *log_dirs, "--output-dir", str(tmp_path / "new")]
    said = CliRunner().invoke(kafkalog, [*arguments, "--as-of", STARTED_AT]).stdout
    assert "at the next start: NO START of node 1" in said
    page = (tmp_path / "new" / "report.html").read_text()
    section = page[page.index('id="start"') :]
    assert "Node 1 does NOT start with Kafka 4.4" in section
    assert "directory.id" in section
