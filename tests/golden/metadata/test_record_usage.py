"""What fills `__cluster_metadata`, against Kafka's own dump of it. Rule: docs/format.md F1249."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.repository import Unpack

TYPE = re.compile(r'payload: \{"type":"([A-Z_]+)"')


def dumped_types(messages: Path) -> Counter[str]:
    """Return how often Kafka's tool shows each type, as `RegisterBrokerRecord`."""
    found: Counter[str] = Counter()
    for path in (messages / "__cluster_metadata-0").glob("*.log.txt"):
        types = TYPE.findall(path.read_text())
        found.update(each.title().replace("_", "") for each in types)
    return found


def rows(*arguments: object) -> list[dict[str, Any]]:
    given = ["metadata", *map(str, arguments), "--format", "json"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == ExitCode.DONE
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_type_has_as_many_records_and_all_have_the_bytes_of_the_log(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    found = rows(logs, "--by", "record")
    counts: Counter[str] = Counter()
    for row in found:
        counts[row["record_name"]] += row["records"]
    wanted = dumped_types(unpacked("kafka44.messages"))
    assert wanted["NoOpRecord"] > 100
    assert {name: counts[name] for name in wanted} == dict(wanted)
    size = sum(path.stat().st_size for path in (logs / "__cluster_metadata-0").glob("*.log"))
    assert abs(sum(row["bytes"] for row in found) - size) < len(found)


def test_hours_sum_up_to_the_types_and_brokers_are_named(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    by_record = {
        (row["record_name"], row["broker_id"]): row for row in rows(logs, "--by", "record")
    }
    counts: Counter[tuple[str, int | None]] = Counter()
    for row in rows(logs, "--by", "record-hour"):
        counts[row["record_name"], row["broker_id"]] += row["records"]
    assert counts == {kind: row["records"] for kind, row in by_record.items()}
    assert by_record["RegisterBrokerRecord", 1]["records"] == 2


def test_as_of_leaves_out_what_came_later(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    found = rows(logs, "--by", "record", "--as-of-offset", 300)
    assert sum(row["records"] for row in found) == 300


def test_topics_cannot_be_chosen(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    given = ["metadata", str(logs), "--by", "record", "--topic", "shop.tx"]
    assert CliRunner().invoke(kafkalog, given).exit_code == ExitCode.WRONG_ARGUMENTS
