"""Objects of Aiven's plug-in: searched as logs, copied as they are stored. Rules: docs/erasure.md
F1108, F1117, F1264, F1332."""

import hashlib
import json
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.logs.tiered_objects import store_segment


def _run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, ["erase", *map(str, arguments)])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def _segment(*keys: bytes) -> bytes:
    return b"".join(
        write_batch([Record(offset, 1, 0, key, b"value" * 50)]) for offset, key in enumerate(keys)
    )


def _inputs(tmp_path: Path) -> Path:
    """A log directory with the person, and a tier without."""
    partition = tmp_path / "in" / "orders-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(_segment(b"cust-17", b"b"))
    store_segment(
        tmp_path / "in" / "tier", "orders-0", 0, _segment(*[b"b"] * 90), is_compressed=True
    )
    return tmp_path / "in"


def test_objects_without_the_person_are_copied_byte_for_byte(tmp_path: Path) -> None:
    inputs, target, proof = _inputs(tmp_path), tmp_path / "new", tmp_path / "proof.json"
    code, out = _run(inputs, "--key", "cust-17", "--to", target, "--proof", proof)
    assert (code, "92 records in 2 log files searched" in out) == (0, True), out
    for path in (inputs / "tier").rglob("*"):
        if path.is_file():
            assert (target / path.relative_to(inputs)).read_bytes() == path.read_bytes()
    for each in json.loads(proof.read_text())["log_files"]:
        stored = Path(each["output"]).read_bytes()
        assert hashlib.sha256(stored).hexdigest() == each["sha256_after"]
    assert _run("--verify", proof, "--key", "cust-17", target)[0] == 0


def test_an_object_with_the_person_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    # F1332: each is named, by a search alone too.
    inputs, target = _inputs(tmp_path), tmp_path / "new"
    store_segment(inputs / "tier", "clicks-0", 0, _segment(b"b", b"c"), is_compressed=True)
    objects = [str(path) for path in (inputs / "tier").rglob("*.log")]
    code, out = _run(inputs, "--key", "b", "--to", target)
    assert code != 0
    assert "Aiven's plug-in are not written again" in out
    assert len(objects) == 2 and all(path in out for path in objects), out
    assert not target.exists()
    code, out = _run(inputs, "--key", "b", "--check")
    assert code == 1
    for path in objects:
        assert f"cannot be erased here: {path}" in out


def test_an_encrypted_object_is_copied_and_named(tmp_path: Path) -> None:
    inputs, target = _inputs(tmp_path), tmp_path / "new"
    (manifest,) = inputs.rglob("*.rsm-manifest")
    fields = json.loads(manifest.read_text())
    fields["encryption"] = {"dataKey": "a", "aad": "b"}
    manifest.write_text(json.dumps(fields))
    code, out = _run(inputs, "--key", "cust-17", "--to", target)
    (stored,) = inputs.rglob("tier/**/*.log")
    assert (code, f"NOT SEARCHED: {stored.stat().st_size:,} bytes" in out) == (1, True), out
    assert (target / stored.relative_to(inputs)).read_bytes() == stored.read_bytes()
