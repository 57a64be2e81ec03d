"""`kafkalog erase`: a person's records removed from real brokers' files, and the proof of it.

Rules: docs/erasure.md.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.forks import killed_at
from tests.support.repository import EXAMPLES, Unpack

SHOP = EXAMPLES.parent / "shop-week"
# Keys with records in each of several topics and codecs, some in files that a broker had marked.
ARCHIVES = [
    ("kafka44.logs", ["hex:73686f702e6b3238", "shop.k4", "shop.ck3"]),
    ("kafka010.logs", ["old.k4", "old.ck11", "hex:"]),
    ("kafka08.logs", ["o8.k8", "o8.ck11", "o8.ck13", "o8.k0", "hex:"]),
]
Row = dict[str, Any]


def run(command: str, *arguments: object, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, [command, *map(str, arguments)], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[Row]:
    _, out, _ = run("erase", *arguments, "--format", "json")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A customer of the shop: records with the key, and orders that name it."""
    path = tmp_path / "person.txt"
    path.write_text('c-01\n{"value-path": "$.customer", "value": "c-01"}\n')
    return path


def dumped(directory: Path) -> list[tuple[object, ...]]:
    """Every record in every log file, marked ones too, by place."""
    found: list[tuple[object, ...]] = []
    for path in sorted(directory.rglob("*.log*")):
        if "remote-log-index-cache" in path.parts or "__" in path.parent.name:
            continue
        _, out, _ = run("dump", "--deep", path, "--format", "json")
        for line in map(json.loads, out.splitlines()):
            if line["type"] == "record":
                place = path.relative_to(directory), line["offset"], line["timestamp"]
                found.append((*place, line.get("key"), line.get("payload"), str(line["headers"])))
    return found


@pytest.mark.parametrize(("archive", "keys"), ARCHIVES)
def test_all_other_records_stay_where_they_were(
    archive: str, keys: list[str], unpacked: Unpack, tmp_path: Path
) -> None:
    # F1100 to F1104, F1110, F1113: formats 0, 1 and 2, each codec, marked files and directories.
    source = unpacked(archive) / "log-dirs"
    identifiers = tmp_path / "keys.txt"
    identifiers.write_text("".join(f'{{"key": "{key}"}}\n' for key in keys))
    target = tmp_path / "new"
    code, out, err = run("erase", source, "--identifiers", identifiers, "--to", target)
    assert code == 0, out + err
    texts = [bytes.fromhex(key[4:]).decode() if key.startswith("hex:") else key for key in keys]
    before = dumped(source)
    expected = [row for row in before if row[3] not in texts]
    assert dumped(target) == expected
    assert len(before) - len(expected) > 20
    of_source, of_target = (run("check", each)[1].splitlines()[-1] for each in (source, target))
    assert of_source.split(":")[0] == of_target.split(":")[0]
    assert {path.relative_to(source) for path in source.rglob("*")} - {
        path.relative_to(target) for path in target.rglob("*")
    } <= {Path(".lock"), Path("remote-log-index-cache")}


def test_a_check_names_each_record_and_writes_nothing(person: Path, tmp_path: Path) -> None:
    # F1111.
    found = rows(SHOP, "--identifiers", person, "--check", "--by", "record")
    _, out, _ = run("find", SHOP, "--value-contains", '"c-01"', "--format", "json")
    of_find = [json.loads(line) for line in out.splitlines()]
    named = {
        (row["topic"], row["partition"], row["offset"])
        for row in of_find
        if row["type"] == "found" and row["topic"] == "orders"
    }
    assert {
        (row["topic"], row["partition"], row["offset"]) for row in found if row["topic"] == "orders"
    } == named
    assert list(tmp_path.iterdir()) == [person]
    code, out, _ = run("erase", SHOP, "--identifiers", person, "--check")
    assert (code, out.splitlines()[-1].endswith("nothing is written")) == (1, True)


def test_a_check_refuses_what_the_run_is_refused_for(person: Path, tmp_path: Path) -> None:
    # F1111: the same line with --check writes nothing.
    target, proof = tmp_path / "new", tmp_path / "proof.json"
    given = ("erase", SHOP, "--identifiers", person, "--to", target, "--proof", proof, "--check")
    code, out, _ = run(*given)
    assert code == 1
    assert "41 records found in 2 topics" in out and out.endswith("nothing is written\n")
    assert not target.exists() and not proof.exists()
    target.mkdir()
    code, _, err = run(*given)
    assert (code, "new exists" in err) == (3, True)


@pytest.mark.parametrize("option", ["--topic", "--topic-pattern"])
def test_a_misspelt_topic_is_refused(person: Path, option: str) -> None:
    """It would be searched in vain, and the person be called gone."""
    given = (EXAMPLES / "kafka-4.4", "--identifiers", person, "--check")
    code, _, error = run("erase", *given, option, "odrers")
    assert (code, f"{option}: 'odrers' is not valid" in error) == (2, True)


def test_identifiers_come_from_stdin_too(person: Path) -> None:
    # F1105.
    given = (SHOP, "--identifiers", "-", "--check")
    assert (
        run("erase", *given, stdin=person.read_text())[:2]
        == run("erase", SHOP, "--identifiers", person, "--check")[:2]
    )


def test_a_legal_hold_keeps_records_and_counts_them(person: Path, tmp_path: Path) -> None:
    # F1112.
    hold = tmp_path / "hold.txt"
    hold.write_text('{"text": "c-01"}\n')
    given = (SHOP, "--identifiers", person, "--keep", hold)
    totals = rows(*given, "--check")
    assert all(row["erased"] == 0 and row["held"] == row["matches"] for row in totals)
    target = tmp_path / "new"
    assert run("erase", *given, "--to", target)[0] == 0
    for path in SHOP.rglob("*.log"):
        assert (target / path.relative_to(SHOP)).read_bytes() == path.read_bytes()


def _erased(person: Path, tmp_path: Path, *more: object) -> tuple[Path, Path, Row]:
    target, proof = tmp_path / "new", tmp_path / "proof.json"
    given = (SHOP, "--identifiers", person, "--to", target, "--proof", proof, *more)
    code, out, err = run("erase", *given)
    assert code == 0, out + err
    return target, proof, json.loads(proof.read_text())


def test_the_proof_has_each_file_with_its_checksums(person: Path, tmp_path: Path) -> None:
    # F1117, F1118.
    target, _, proof = _erased(person, tmp_path)
    for each in (*proof["log_files"], *proof["other_files"]):
        for path, name in ((each["input"], "sha256_before"), (each["output"], "sha256_after")):
            assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == each[name], path
    written = {Path(each["output"]) for each in (*proof["log_files"], *proof["other_files"])}
    assert written == {path for path in target.rglob("*") if path.is_file()}
    changed = [each for each in proof["log_files"] if each["sha256_before"] != each["sha256_after"]]
    assert [each["erased"] > 0 for each in proof["log_files"]] == [
        each in changed for each in proof["log_files"]
    ]
    assert sum(each["erased"] for each in changed) == proof["totals"]["erased"]
    assert "c-01" not in json.dumps(proof).replace(str(person), "")
    assert proof["signature"] is None


def test_the_proof_has_hmacs_that_openssl_computes(person: Path, tmp_path: Path) -> None:
    # F1106, F1119.
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    _, proof_file, proof = _erased(person, tmp_path, "--hmac-key", secret)
    said = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", secret.read_text().strip()],
        input=b"key\0\0c-01",
        capture_output=True,
        check=True,
    )
    hmacs = [each["hmac_sha256"] for each in proof["identifiers"]["hmacs"]]
    assert said.stdout.split()[-1].decode() in hmacs
    other = tmp_path / "other.txt"
    other.write_text("c-02\nc-03\n")
    given = ("--verify", proof_file, tmp_path / "new", "--hmac-key", secret)
    assert run("erase", *given, "--identifiers", other)[0] == 2
    assert run("erase", *given, "--identifiers", person)[0] == 0


def test_a_record_is_found_by_the_proofs_hmacs_alone(person: Path, tmp_path: Path) -> None:
    # F1263.
    person.write_text(person.read_text() + '{"header": "user", "value": "c-01"}\n')
    secret, hold = tmp_path / "secret", tmp_path / "hold.txt"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    hold.write_text('{"value-path": "$.order", "value": "10152"}\n')
    target, proof_file, proof = _erased(person, tmp_path, "--hmac-key", secret, "--keep", hold)
    given = ("--verify", proof_file, "--hmac-key", secret)
    _, out, err = run("erase", *given, target)
    assert proof["totals"]["held"] == 1
    assert "1 record found in 1 topic, 1 of them on legal hold" in out
    # A value of the shop is cut short and not JSON: nothing is claimed about it.
    assert "NOT DECODED: 1 value" in out
    assert "internal topics for names" in err
    by_hmacs = rows(*given, SHOP, "--by", "record")
    by_identifiers = rows(
        "--identifiers", person, "--keep", hold, "--check", SHOP, "--by", "record"
    )
    assert len(by_hmacs) > 30
    assert by_hmacs == by_identifiers
    # With another secret nothing would be found.
    secret.write_text("another-secret-of-enough-bytes")
    assert run("erase", *given, SHOP)[0] == 2


def test_texts_are_not_found_by_hmacs_and_are_named(tmp_path: Path) -> None:
    # F1263.
    secret, person = tmp_path / "secret", tmp_path / "person.txt"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    person.write_text('{"text": "c-01"}\n')
    target, proof_file, _ = _erased(person, tmp_path, "--hmac-key", secret)
    code, out, _ = run("erase", "--verify", proof_file, "--hmac-key", secret, target)
    assert code == 1
    assert "NOT SEARCHED: 1 identifier of kind text" in out
    secret_check = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", secret.read_text().strip()],
        input=b"text\0\0kafkalog erasure proof",
        capture_output=True,
        check=True,
    )
    proof = json.loads(proof_file.read_text())
    assert secret_check.stdout.split()[-1].decode() == proof["identifiers"]["key_check"]


def test_openssl_checks_the_signature(person: Path, tmp_path: Path) -> None:
    # F1120.
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    target, proof_file, proof = _erased(person, tmp_path, "--sign-key", key)
    public.write_text(proof["signature"]["public_key"])
    signature = proof_file.with_name("proof.json.sig")
    command: list[str | Path] = ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin"]
    command += ["-inkey", public]
    command += ["-in", proof_file, "-sigfile", signature]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    given = ("--verify", proof_file, target, "--identifiers", person)
    assert run("erase", *given)[:2][1].endswith("its signature is right\n")
    proof_file.write_bytes(proof_file.read_bytes().replace(b'"held": 0', b'"held": 1'))
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
    code, out, _ = run("erase", *given)
    assert (code, "THE SIGNATURE IS WRONG" in out) == (1, True)
    signature.unlink()
    code, out, _ = run("erase", *given)
    assert (code, "THE SIGNATURE IS MISSING" in out) == (1, True)


def test_a_record_that_was_put_back_by_hand_is_found(person: Path, tmp_path: Path) -> None:
    # F1121.
    target, proof_file, _ = _erased(person, tmp_path)
    given = ("--verify", proof_file, target)
    code, out, _ = run("erase", *given, "--identifiers", person, "--by", "record")
    assert (code, "no record found" in out) == (0, True)
    log = max((target / "customers-0").glob("*.log"))
    size = log.stat().st_size
    end = json.loads(run("ls", target, "--by", "partition", "--format", "json")[1].splitlines()[1])
    assert end
    _, out, _ = run("get-offsets", target, "--topic", "customers")
    last = int(out.strip().rpartition(":")[2])
    with log.open("ab") as file:
        file.write(write_batch([Record(last, 1, 0, b"c-01", b"back")]))
    code, out, err = run(
        "erase", *given, "--identifiers", person, "--by", "record", "--format", "json"
    )
    (row,) = map(json.loads, out.splitlines())
    assert code == 1
    assert (row["topic"], row["offset"], row["position"]) == ("customers", last, size)
    assert row["file"] == str(log)
    assert f"not in the proof: {log}" in err
    # Without the identifiers the file's checksum shows it.
    code, out, _ = run("erase", *given)
    assert (code, "NOT IN THE PROOF: 1 log file" in out) == (1, True)


def test_a_file_of_the_proof_that_is_missing_is_named(person: Path, tmp_path: Path) -> None:
    # F1121.
    target, proof_file, _ = _erased(person, tmp_path)
    gone = min((target / "orders-1").glob("*.log"))
    gone.unlink()
    code, _, err = run("erase", "--verify", proof_file, target, "--identifiers", person)
    assert (code, f"in the proof, and not here: {gone}" in err) == (1, True)


def test_what_is_damaged_is_not_claimed(tmp_path: Path) -> None:
    # F1108, F1117: by hand, as in the test of salvage.
    target, proof_file = tmp_path / "new", tmp_path / "proof.json"
    given = (EXAMPLES / "damaged", "--text", "surely-not-there", "--to", target)
    code, out, err = run("erase", *given, "--proof", proof_file)
    assert (code, "NOT SEARCHED: 9,533 bytes" in out) == (1, True)
    assert "position 23728, 1,558 bytes: checksum" in err
    proof = json.loads(proof_file.read_text())
    ranges = [
        (place["position"], place["bytes"])
        for each in proof["log_files"]
        for place in each["not_searched"]
    ]
    assert sorted(ranges) == [(7979, 4096), (12075, 3879), (23728, 1558)]


def test_the_page_says_what_the_proof_says(person: Path, tmp_path: Path) -> None:
    # F1122.
    page = tmp_path / "proof.html"
    _, _, proof = _erased(person, tmp_path, "--page", page)
    text = page.read_text()
    assert f"<h1>{proof['totals']['erased']} records erased</h1>" in text
    assert "c-01" not in text
    for each in proof["limits"]:
        assert each.replace("'", "&#x27;") in text
    assert "http" not in text.replace("http-equiv", "")


def test_several_inputs_get_a_folder_each(person: Path, tmp_path: Path) -> None:
    # F1114.
    first, second = tmp_path / "a" / "kafka", tmp_path / "b" / "kafka"
    for each in (first, second):
        shutil.copytree(SHOP, each)
    target = tmp_path / "new"
    assert run("erase", first, second, "--identifiers", person, "--to", target)[0] == 0
    assert sorted(path.name for path in target.iterdir()) == ["kafka", "kafka-2"]
    one, other = (dumped(target / name) for name in ("kafka", "kafka-2"))
    assert one == other
    assert not any(row[3] == "c-01" for row in one)


def test_topics_that_are_not_asked_for_are_copied_and_named(person: Path, tmp_path: Path) -> None:
    # F1110.
    target = tmp_path / "new"
    given = (SHOP, "--identifiers", person, "--topic", "orders", "--to", target)
    _, _, err = run("erase", *given, "--proof", tmp_path / "proof.json")
    assert "not searched, as not asked for: __consumer_offsets, customers" in err
    for path in (SHOP / "customers-0").iterdir():
        assert (target / "customers-0" / path.name).read_bytes() == path.read_bytes()
    # They are in the proof all the same, and missed if they are not there.
    verified = ("erase", "--verify", tmp_path / "proof.json", target, "--show", 0)
    assert "14 log files as the proof has them; no record was searched for" in run(*verified)[1]
    (target / "customers-0" / f"{0:020d}.log").unlink()
    code, out, err = run(*verified)
    assert (code, "MISSING: 1 log file of the proof" in out) == (1, True), out + err


def test_tiered_segments_are_written_again(unpacked: Unpack, tmp_path: Path) -> None:
    # F1115.
    tier = unpacked("tiered43.tiered") / "kafka-tiered-storage"
    (some, *_) = sorted(tier.rglob("*.log"))
    _, out, _ = run("dump", "--deep", some, "--format", "json")
    keys = [row.get("key") for row in map(json.loads, out.splitlines()) if row["type"] == "record"]
    key = next(each for each in keys if each)
    target = tmp_path / "new"
    code, out, err = run("erase", tier, "--key", key, "--to", target)
    assert code == 0, out + err
    before = dumped(tier)
    expected = [row for row in before if row[3] != key]
    assert dumped(target) == expected
    assert len(expected) < len(before)
    assert run("check", target)[0] == run("check", tier)[0]


def test_groups_named_after_a_person_are_reported(tmp_path: Path) -> None:
    # F1109: the shop's groups are billing and shipping.
    code, out, err = run("erase", SHOP, "--key", "billing", "--check", "--format", "json")
    mentions = {row["topic"]: row["mentions"] for row in map(json.loads, out.splitlines())}
    assert mentions["__consumer_offsets"] > 0
    assert "of this internal topic name an identifier and stay: billing" in err
    assert code == 0


def test_a_key_with_only_a_tombstone_is_not_yet_erased(unpacked: Unpack) -> None:
    # F1112: by hand, from the dump of the fixture's compacted topics.
    source = unpacked("kafka44.logs") / "log-dirs" / "shop.compact-keep-0"
    _, out, _ = run("dump", "--deep", *source.glob("*.log"), "--format", "json")
    records = [row for row in map(json.loads, out.splitlines()) if row["type"] == "record"]
    values = {row["key"] for row in records if row["valueSize"] != -1}
    lone = next(row["key"] for row in records if row["key"] not in values)
    _, _, err = run("erase", source, "--key", lone, "--check")
    assert "not yet erased:" in err
    assert "1 key with only a tombstone" in err
    assert "the first cleaning after 2026-" in err


def test_a_directory_that_a_broker_has_locked_is_refused(person: Path, tmp_path: Path) -> None:
    # F1116.
    source = tmp_path / "logs"
    shutil.copytree(SHOP, source)
    lock = source / ".lock"
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        result = CliRunner().invoke(
            kafkalog,
            ["erase", str(source), "--identifiers", str(person), "--to", str(tmp_path / "new")],
        )
        holder.kill()
    assert f"process {holder.pid} has locked it" in f"{result.output}{result.exception}"
    assert not (tmp_path / "new").exists()
    # A lock that is left by a broker that has ended is none; it is not copied.
    assert run("erase", source, "--identifiers", person, "--to", tmp_path / "new")[0] == 0
    assert not (tmp_path / "new" / ".lock").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (SHOP, "--key", "a"),
        (SHOP, "--check"),
        (SHOP, "--key", "a", "--check", "--verify", "proof.json"),
        (SHOP, "--key", "a", "--check", "--proof", "proof.json"),
        (SHOP, "--key", "a", "--to", "new", "--sign-key", "key.pem"),
        (SHOP, "--header", "user", "--check"),
        (SHOP, "--value-path", "customer=1", "--check"),
        (SHOP, "--identifiers", "absent.txt", "--check"),
    ],
)
def test_arguments_that_say_nothing_are_refused(arguments: tuple[object, ...]) -> None:
    assert run("erase", *arguments)[0] == 2


# Where a run is killed: a function, and the number of its call.
_POINTS = [
    ("kafkalog.questions.disks.erasure.search_file", 5),
    ("kafkalog.inspection.erasure.erased_files._Copy.replace", 3),
    ("kafkalog.questions.disks.erased_directories.erased_indexes", 1),
    ("kafkalog.storage.files.whole_directory.flush_directory", 1),
    ("kafkalog.questions.disks.erasure_proof.proof_bytes", 1),
]


@pytest.mark.parametrize(("name", "call"), _POINTS)
def test_a_run_that_is_killed_leaves_nothing_half_done(
    name: str, call: int, person: Path, tmp_path: Path
) -> None:
    # F1123.
    folder = tmp_path / "work"
    folder.mkdir()
    target, proof = folder / "new", folder / "proof.json"
    given = [str(SHOP), "--identifiers", str(person), "--to", str(target), "--proof", str(proof)]
    killed_at(name, lambda: run("erase", *given, "--processes", "1"), call)
    assert not proof.exists()
    if name.endswith("proof_bytes"):
        # The directory is whole; a proof of it comes with the next run, or none.
        assert not any(row[3] == "c-01" for row in dumped(target))
        shutil.rmtree(target)
    assert not target.exists()
    assert run("erase", *given)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["new", "proof.json"]


def test_remote_directories_are_searched_and_verified(person: Path, tmp_path: Path) -> None:
    # F1110, F1121: the same rows as of local files.
    memory = pytest.importorskip("fsspec").filesystem("memory")
    target, proof_file, _ = _erased(person, tmp_path)
    memory.put(str(SHOP), "/erase/old", recursive=True)
    memory.put(str(target), "/erase/new", recursive=True)
    try:
        given = ("--identifiers", person)
        local = rows(SHOP, *given, "--check", "--by", "record")
        remote = rows("memory://erase/old", *given, "--check", "--by", "record")
        assert [{**row, "file": ""} for row in remote] == [{**row, "file": ""} for row in local]
        code, out, _ = run("erase", "--verify", proof_file, *given, "memory://erase/new")
        assert (code, "14 log files as the proof has them; no record found" in out) == (0, True)
        code, _, err = run("erase", "--verify", proof_file, *given, "memory://erase/old")
        assert code == 1
        assert "not in the proof: memory://erase/old/customers-0/" in err
    finally:
        memory.rm("/erase", recursive=True)
