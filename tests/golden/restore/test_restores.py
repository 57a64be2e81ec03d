"""What `kafkalog restore` refuses, leaves out, names and undoes: damaged, missing and chosen
copies, several nodes, restores that are stopped. Set restore44 of tests/golden/README.md."""

import json
import shutil
from pathlib import Path

from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.replay import image_at
from tests.support.golden.restored_copies import AS_OF, Unpacked, copied, logs_of, records, restore


def test_strict_writes_nothing_that_is_not_exact(inputs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "cluster"
    result = restore(inputs, "--as-of", AS_OF, "--to", str(target), "--strict")
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "state-0: the cleaner of each copy has looked at records after the cut" in result.output
    # An error is one line, and a terminal gets no escapes for line ends.
    assert "\\n" not in result.output
    assert not target.exists()


def test_offsets_that_are_used_again_have_no_gap(inputs: list[Path]) -> None:
    """F1045."""
    again = restore(inputs, "--as-of", AS_OF, "--check", "--reuse-offsets")
    assert "are used again: who keeps offsets elsewhere" in again.output
    both = restore(inputs, "--as-of", AS_OF, "--check", "--reuse-offsets", "--offset-gap", "10")
    assert both.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--reuse-offsets" in both.output and "--offset-gap" in both.output


def test_moments_that_copies_do_not_cover_are_said(inputs: list[Path]) -> None:
    """F1042."""
    late = restore(inputs, "--as-of", "2026-11-25T19:50:00Z", "--check")
    assert late.exit_code == ExitCode.UNREADABLE_INPUT
    assert "no disk covers that moment" in late.output
    early = restore(inputs, "--as-of", "2026-11-25T00:00:00Z", "--check")
    assert early.exit_code == ExitCode.UNREADABLE_INPUT
    assert "the cluster had no topic at 2026-11-25T00:00:00.000Z" in early.output
    between = restore(inputs[:2], "--as-of", "2026-11-25T19:48:48.900Z", "--check")
    assert between.exit_code == ExitCode.UNREADABLE_INPUT
    exact = restore(inputs, "--as-of", "2026-11-25T19:48:41.800Z", "--check", "--format", "json")
    # A client has deleted records, and the archive has no times of files: F1204.
    assert [line.split(":")[0] for line in json.loads(exact.output)["not_exact"]] == ["plain-0"]


def test_disks_of_a_cluster_with_zookeeper_are_refused(unpacked: Unpacked) -> None:
    disks = sorted((unpacked("kafka39zk.logs") / "log-dirs").iterdir())
    refused = restore(disks, "--check")
    assert refused.exit_code == ExitCode.UNREADABLE_INPUT
    assert "clusters with ZooKeeper" in refused.output


def test_partitions_that_only_earlier_copies_have_are_said(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1042: of events-1 only the first copy is left, which is from before the moment."""
    copies = copied(inputs[1:], tmp_path)
    for copy in copies:
        shutil.rmtree(copy / "events-1")
    result = restore(
        [inputs[0], *copies],
        "--as-of",
        "2026-11-25T19:48:48Z",
        "--check",
        "--format",
        "json",
        "--topic",
        "events",
    )
    assert result.exit_code == ExitCode.FINDINGS
    lines = [each for each in json.loads(result.stdout)["not_exact"] if "events" in each]
    assert lines[0].startswith(
        "events-1: no copy goes up to the moment: records after 2026-11-25T19:48:41"
    )
    # F1216: consumers had read on.
    assert lines[1].startswith("events-1: group g-")
    assert "and the copies end at " in lines[1]


def test_a_copy_that_took_long_is_known_by_its_checkpoints(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1216: the log of plain-0 was copied before the checkpoints beside it. F1217: the cleaner was
    at work after its checkpoint was copied."""
    copy = tmp_path / "copy" / "data"
    shutil.copytree(inputs[2], copy)
    for log in sorted((copy / "plain-0").glob("*.log"))[-3:]:
        log.unlink()
    checkpoint = copy / "cleaner-offset-checkpoint"
    lines = [line for line in checkpoint.read_text().splitlines()[2:] if "state" not in line]
    checkpoint.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    found = restore([copy], "--as-of", "2026-11-25T19:48:59Z", "--check", "--format", "json")
    lines = json.loads(found.stdout)["not_exact"]
    assert any(line.startswith("plain-0: a checkpoint beside a copy has offset") for line in lines)
    cleaned = "the cleaner of each copy has looked at records after the cut"
    assert sum(cleaned in line for line in lines) == 2


def test_topics_are_chosen_and_some_are_taken_later(inputs: list[Path]) -> None:
    """F1037, F1052 and F1057."""
    result = restore(
        inputs, "--as-of", AS_OF, "--check", "--format", "json", "--topic-pattern", "^events|^pla",
        "--latest-topics", "plain", "--group-pattern", "classic",
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert {row["topic"] for row in found["partitions"]} == {"events", "plain"}
    assert {row["group_id"] for row in found["commits"]} == {"g-classic"}
    (plain,) = [row for row in found["partitions"] if row["topic"] == "plain"]
    assert plain["cut_offset"] == plain["old_end_offset"]
    reasons = {row["topic"]: row["reason"] for row in found["left_out"]}
    assert reasons["transfers"] == "not chosen"


def test_topics_of_another_time_are_left_out(inputs: list[Path]) -> None:
    """F1037: `doomed` was deleted at 19:48:55.4, after two of the disks were copied."""
    found = restore(inputs, "--as-of", "2026-11-25T19:48:57Z", "--check", "--format", "json")
    reasons = {row["topic"]: row["reason"] for row in json.loads(found.stdout)["left_out"]}
    assert reasons["doomed"] == "deleted before the moment"


def test_the_screen_says_why_topics_are_left_out(inputs: list[Path]) -> None:
    """F1037 and F925: the administrator's ledger has this id of the former topic `again`."""
    said = restore(inputs, "--as-of", AS_OF, "--check").stdout.splitlines()
    assert "  left out: new-late: created after the moment" in said
    (former,) = [line for line in said if "again@" in line]
    assert former.startswith("  left out: again@GyHO3CyIQHe3og9W40oJAg: deleted before the moment")
    chosen = restore(inputs, "--as-of", AS_OF, "--check", "--topic", "plain").stdout
    assert "left out: again, derived, doomed, empty, events and 3 more: not chosen" in chosen


def test_topics_without_a_copy_are_left_out_or_begin_empty(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1037."""
    copies = copied(inputs, tmp_path)
    for copy in copies:
        shutil.rmtree(copy / "events-2", ignore_errors=True)
    arguments = ("--as-of", AS_OF, "--check", "--format", "json")
    found = json.loads(restore(copies, *arguments).stdout)
    (reason,) = [row["reason"] for row in found["left_out"] if row["topic"] == "events"]
    assert reason == "no disk has a copy of 1 of its 4 partitions"
    assert all(row["topic"] != "events" for row in found["commits"])
    made = json.loads(restore(copies, *arguments, "--create-missing").stdout)
    assert [(row["topic"], row["partition"]) for row in made["begin_empty"]] == [("events", 2)]
    (clipped,) = [
        row
        for row in made["commits"]
        if (row["group_id"], row["partition"]) == ("g-classic", 2) and row["topic"] == "events"
    ]
    assert clipped["committed_offset"] == 0
    assert clipped["is_clipped"]


def test_damage_is_left_out_and_named(inputs: list[Path], tmp_path: Path) -> None:
    """F1064."""
    copies = copied(inputs, tmp_path)
    for copy in copies:
        log = copy / "events-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[len(data) // 2 + 40] ^= 0xFF
        log.write_bytes(data)
    target = tmp_path / "restored"
    result = restore(copies, "--as-of", AS_OF, "--to", str(target))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    manifest = json.loads((target / "manifest.json").read_text())
    (row,) = [row for row in manifest["partitions"] if row["lost"]]
    assert (row["topic"], row["partition"]) == ("events", 0)
    assert row["lost"][0]["reason"] == "checksum"
    assert any("events-0" in line and "are left out" in line for line in manifest["not_exact"])


def test_what_is_damaged_in_one_copy_is_taken_from_another(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1219: of each copy another batch is damaged; the end of the longest is torn."""
    copies = copied(inputs, tmp_path)
    for number, copy in enumerate(copies):
        log = copy / "events-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[1000 + 2000 * number] ^= 0xFF
        log.write_bytes(data)
    torn = max((copies[-1] / "plain-0").glob("*.log"))
    torn.write_bytes(torn.read_bytes()[:-7])
    found = json.loads(restore(copies, "--as-of", AS_OF, "--check", "--format", "json").stdout)
    sound = json.loads(restore(inputs, "--as-of", AS_OF, "--check", "--format", "json").stdout)
    for row, before in zip(found["partitions"], sound["partitions"], strict=True):
        assert row["lost"] == []
        for name in ("topic", "partition", "cut_offset", "records"):
            assert row[name] == before[name]


def test_several_nodes_get_a_directory_each(inputs: list[Path], tmp_path: Path) -> None:
    """F1034 and F1038."""
    target = tmp_path / "cluster"
    nodes = "1@h1:9092/9093,2@h2:9092/9093,3@h3:9092/9093"
    result = restore(
        inputs, "--as-of", AS_OF, "--to", str(target), "--nodes", nodes, "--replication", "3"
    )
    assert result.exit_code == ExitCode.FINDINGS, result.output
    directories = [target / f"node-{number}" for number in (1, 2, 3)]
    ids = set()
    for directory in directories:
        text = (directory / "server.properties").read_text()
        assert "controller.quorum.voters=1@h1:9093,2@h2:9093,3@h3:9093" in text
        ids.add((directory / "data" / "meta.properties").read_text())
    assert len(ids) == 3
    image = image_at(metadata_copies([str(directories[0] / "data")])[0].log).image
    for row in image.tables["partition"].values():
        assert sorted(row["replicas"]) == sorted(row["isr"]) == [1, 2, 3]
    configs = {key: row["value"] for key, row in image.tables["config"].items()}
    assert configs["topic", "state", "min.insync.replicas"] == "2"


def test_links_keep_the_bytes_of_whole_segments(inputs: list[Path], tmp_path: Path) -> None:
    """F1044."""
    copies = [tmp_path / f"copy{number}" / "data" for number in range(len(inputs))]
    for source, copy in zip(inputs, copies, strict=True):
        shutil.copytree(source, copy)
    target = tmp_path / "restored"
    result = restore(copies, "--as-of", AS_OF, "--to", str(target), "--link")
    assert result.exit_code == ExitCode.FINDINGS, result.output
    logs = sorted((target / "data" / "plain-0").glob("*.log"))
    linked = [path for path in logs if path.stat().st_nlink > 1]
    assert linked
    # What a broker appends to is its own.
    assert logs[-1] not in linked


def test_the_disks_of_one_node_are_not_cut_unless_a_time_is_given(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1042: the topics of this broker have records of times to come. F1217: where nothing is cut
    the cleaner has seen nothing that is not there."""
    target = tmp_path / "restored"
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    result = restore([log_dir], "--to", str(target))
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["partitions"]
    before, after = logs_of([log_dir]), logs_of([target / "data"])
    for row in manifest["partitions"]:
        assert row["cut_offset"] == row["old_end_offset"]
        assert not row["is_cleaned_beyond"]
        if not row["is_united"]:
            key = row["topic"], row["partition"]
            assert list(records(before[key])) == list(records(after[key]))


def test_what_only_the_tier_has_is_said(unpacked: Unpacked, tmp_path: Path) -> None:
    """F1058."""
    target = tmp_path / "restored"
    result = restore([unpacked("tiered43.logs") / "log-dirs"], "--to", str(target))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    assert "tier.tiered-0: offsets 0 to" in result.output
    image = image_at(metadata_copies([str(target / "data")])[0].log).image
    assert not [key for key in image.tables["config"] if key[2].startswith("remote.")]
    manifest = json.loads((target / "manifest.json").read_text())
    removed = {row["config"] for row in manifest["configs"] if row["after"] is None}
    assert "remote.storage.enable" in removed


def test_the_manifest_has_the_input_s_hashes_if_asked_for(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1207."""
    target = tmp_path / "new"
    given = ["--as-of", AS_OF, "--topic", "plain", "--to", str(target), "--hash-inputs"]
    assert restore(inputs, *given).exit_code in (ExitCode.DONE, ExitCode.FINDINGS)
    found = json.loads((target / "manifest.json").read_text())["input_files"]
    assert [*found] == [str(path) for path in inputs]
    for path in inputs:
        files = found[str(path)]
        sizes = {
            str(each.relative_to(path)): each.stat().st_size
            for each in path.rglob("*")
            if each.is_file()
        }
        assert {name: facts["bytes"] for name, facts in files.items()} == sizes
    # RFC 3720 calls it CRC32C; this is its value of no bytes.
    assert found[str(inputs[0])]["empty-0/00000000000000000000.log"]["crc32c"] == "00000000"
