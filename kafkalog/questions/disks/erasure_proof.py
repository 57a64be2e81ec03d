"""What shows that a person's records were removed: a file for programs, and what it rests on.

Everything that was searched and everything that was not is in it, with checksums before and after.
Rules: docs/erasure.md F1117 to F1121.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.errors import OptionError
from kafkalog.inspection.erasure.erased_files import WrittenFile
from kafkalog.inspection.erasure.file_search import FileSearch
from kafkalog.inspection.erasure.identifiers import Identifier, kinds_counted
from kafkalog.inspection.erasure.input_files import InputEntry, Part, is_log_file
from kafkalog.inspection.erasure.sealed_identifiers import SealedIdentifiers, key_check
from kafkalog.questions.disks.erasure import Erasure, Row
from kafkalog.storage.files.files import InputFile
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.words import counted, time_text

FORMAT, VERSION = "kafkalog erasure proof", 1
_PIECE_BYTES = 4 * 1024 * 1024
LIMITS = (
    "It holds for the files and bytes that are listed as searched, and for no others.",
    "Copies that consumers, connectors and other clusters have made are not in it.",
    "The inputs were only read: they still have the records, until somebody deletes them.",
    "Bytes that no program reads as part of a record, such as comments in compressed data, are "
    "not searched.",
    "Snapshots of file systems and volumes, and worn blocks of SSDs, may hold deleted bytes.",
    "Sizes of tiered segments in __remote_log_metadata are those before.",
    "A batch keeps its offsets, its producer and the time of its first record; one without records "
    "also keeps its largest time.",
    "Names of groups, client ids and the like in internal topics stay.",
)


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """What a proof says beyond what was found: the time, kafkalog's version, the key of the HMACs
    and the public key of the signature, None without one."""

    now_ms: int
    version: str
    hmac_key: bytes | None = None
    public_key: str | None = None


def proof(
    erasure: Erasure, written: Sequence[WrittenFile], target: tuple[str, str], request: ProofRequest
) -> dict[str, Any]:
    """Return the proof as JSON's values. `target` is where files were written to, and the name that
    this directory gets."""
    by_path = {each.entry.path: each for each in written}
    wanted, asked = erasure.request.wanted, erasure.request
    logs = [_log_file(each, by_path[each.entry.path], target) for each in erasure.searches]
    searched = {each.entry.path for each in erasure.searches}
    others = [each for each in written if each.entry.path not in searched]
    return {
        "format": FORMAT,
        "version": VERSION,
        "kafkalog": request.version,
        "created": time_text(request.now_ms),
        "created_ms": request.now_ms,
        "inputs": [*dict.fromkeys(each.input_path for each in erasure.entries)],
        "output": target[1],
        "identifiers": _identifiers(wanted.identifiers, request.hmac_key),
        "legal_holds": _identifiers(wanted.held, request.hmac_key),
        "topics_asked_for": {"names": [*asked.topics], "pattern": asked.topic_pattern},
        "totals": _totals(erasure),
        "by_topic": [_without_names(row) for row in erasure.topic_rows()],
        "log_files": logs,
        "other_files": [_other_file(each, target) for each in others],
        "not_searched": [*_not_searched(erasure)],
        "not_yet_erased": [
            {"directory": each.directory, "keys": each.keys, "horizon_ms": each.horizon_ms}
            for each in erasure.tombstones()
        ],
        "limits": LIMITS,
        "signature": _signature(request.public_key),
    }


def proof_bytes(found: Mapping[str, Any]) -> bytes:
    """Return a proof as it is written and signed."""
    return json.dumps(found, ensure_ascii=False, indent=1).encode() + b"\n"


def _identifiers(identifiers: Sequence[Identifier], key: bytes | None) -> dict[str, Any]:
    """Return how many identifiers there are and, with a key, their HMACs: none in clear."""
    hmacs = None if key is None else [
        {"kind": str(each.kind), "name": each.name, "hmac_sha256": each.hmac(key)}
        for each in sorted(identifiers)
    ]  # fmt: skip
    return {
        "count": len(identifiers),
        "kinds": kinds_counted(identifiers),
        "hmacs": hmacs,
        "key_check": None if key is None else key_check(key),
    }


def _signature(public_key: str | None) -> dict[str, str] | None:
    if public_key is None:
        return None
    return {"algorithm": "Ed25519", "file": "beside the proof, with .sig", "public_key": public_key}


def _totals(erasure: Erasure) -> dict[str, int]:
    totals = erasure.totals
    names = (
        *("files", "bytes", "records", "matches", "erased", "held", "tombstones", "mentions"),
        *("undecoded", "elsewhere", "unsearched_bytes"),
    )
    found = {name: getattr(totals, name) for name in names}
    return {**found, "unsearched_files": len(erasure.unknown)}


def _without_names(row: Row) -> dict[str, Any]:
    """Return a row without the names of groups: they can be a person's."""
    return {name: value for name, value in row.items() if name != "names"}


def _log_file(search: FileSearch, written: WrittenFile, target: tuple[str, str]) -> dict[str, Any]:
    hits, entry = search.hits, search.entry
    return {
        **_other_file(written, target),
        "topic": entry.topic,
        "partition": entry.partition,
        "mark": entry.directory_mark or entry.file_mark or None,
        "is_tiered": entry.is_tiered,
        "records": search.records,
        "first_offset": search.first_offset,
        "end_offset": search.end_offset,
        "erased": int(hits.erased.sum()),
        "held": int(hits.held.sum()),
        "tombstones": int(hits.tombstones.sum()),
        "batches_written_again": written.batches,
        "mentions": search.mentions,
        "undecoded": search.undecoded,
        "elsewhere": search.elsewhere,
        "searched_bytes": search.searched_bytes,
        "not_searched": [
            {
                "position": each.position,
                "bytes": each.size,
                "first_offset": each.first_offset,
                "why": each.why,
            }
            for each in search.unsearched
        ],
    }


def _other_file(written: WrittenFile, target: tuple[str, str]) -> dict[str, Any]:
    entry, (scratch, final) = written.entry, target
    return {
        "input": entry.path,
        "output": os.path.join(final, os.path.relpath(written.path, scratch)),
        "bytes_before": entry.size,
        "bytes_after": written.size,
        "sha256_before": written.before,
        "sha256_after": written.after,
    }


def _not_searched(erasure: Erasure) -> Iterator[dict[str, Any]]:
    for each in erasure.left_out:
        why = erasure.why_not(each)
        yield {"file": each.path, "bytes": each.size, "why": why, "is_in_output": False}
    for each in erasure.skipped:
        why = "a topic that was not asked for"
        yield {"file": each.path, "bytes": each.size, "why": why, "is_in_output": True}
    for each in erasure.beside:
        why = erasure.why_not(each)
        yield {"file": each.path, "bytes": each.size, "why": why, "is_in_output": True}


@dataclass
class Verification:
    """What comes of a proof and files: how many log files are as the proof has them, which are not,
    and which of its files are missing; `erasure` is the search of all for identifiers, None without
    them; `unsearched_texts` are identifiers of which only the HMACs are known, and which are parts
    of a record."""

    same: int = 0
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    erasure: Erasure | None = None
    unsearched_texts: int = 0

    @property
    def has_findings(self) -> bool:
        """Whether a record was found, or the files are not those of the proof."""
        erasure = self.erasure
        found = erasure is not None and (erasure.totals.erased > 0 or not erasure.is_complete)
        return found or bool(self.changed or self.missing or self.unsearched_texts)

    def words(self) -> str:
        """Return one line about it."""
        parts = [f"{counted(self.same, 'log file')} as the proof has them"]
        if self.changed:
            parts.append(f"NOT IN THE PROOF: {counted(len(self.changed), 'log file')}")
        if self.missing:
            parts.append(f"MISSING: {counted(len(self.missing), 'log file')} of the proof")
        if self.erasure is None:
            parts.append("no record was searched for, as no identifiers were given")
        else:
            parts.append(self.erasure.words())
        if self.unsearched_texts:
            texts = counted(self.unsearched_texts, "identifier")
            parts.append(
                f"NOT SEARCHED: {texts} of kind text, which an HMAC does not find inside a record; "
                "give --identifiers"
            )
        return "; ".join(parts)


def read_proof(option: str, path: str) -> dict[str, Any]:
    """Return a proof that was written. Raises OptionError for another file."""
    allowed = f"a proof that kafkalog has written, of version {VERSION}"
    try:
        with open(path, "rb") as file:
            found = json.load(file)
        if (found["format"], found["version"]) != (FORMAT, VERSION):
            raise OptionError(option, path, allowed)
        # What is read of it below.
        for each in (*found["log_files"], *found["other_files"]):
            _ = each["sha256_after"], os.path.basename(each["output"])
        _ = found["identifiers"]["hmacs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OptionError(option, path, f"{allowed} ({error})") from error
    return dict(found)


def compared(
    found: Mapping[str, Any], entries: Sequence[InputEntry], *, processes: int | None
) -> Verification:
    """Return how the log files of directories compare with those of a proof, by their checksums:
    whatever their names are."""
    logs = [entry for entry in entries if entry.part is Part.LOG]

    def checksum(entry: InputEntry) -> Iterator[str]:
        yield sha256_of(entry.path)

    count = processes_for(sum(entry.size for entry in logs), processes)
    checksums = [*in_order(checksum, logs, processes=count)]
    # Logs of topics that were not asked for are among the other files.
    others = found["other_files"]
    others = [each for each in others if is_log_file(os.path.basename(each["output"]))]
    listed = [*found["log_files"], *others]
    of_proof = {each["sha256_after"] for each in listed}
    pairs = zip(logs, checksums, strict=True)
    changed = [entry.path for entry, each in pairs if each not in of_proof]
    here = set(checksums)
    missing = [each["output"] for each in listed if each["sha256_after"] not in here]
    return Verification(len(logs) - len(changed), changed, missing)


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with InputFile(path, as_stored=True) as file:
        for position in range(0, file.size, _PIECE_BYTES):
            digest.update(file.read_around(position, _PIECE_BYTES))
    return digest.hexdigest()


def sealed_identifiers(
    option: str, found: Mapping[str, Any], name: str, key: bytes
) -> SealedIdentifiers | None:
    """Return what a proof has of the identifiers, or the legal holds, of this name; None if it has
    no HMACs of them. Raises OptionError for another secret, with which nothing would be found."""
    listed = found[name]
    if not listed["hmacs"]:
        return None
    if listed.get("key_check") != key_check(key):
        raise OptionError(option, "(not shown)", "the secret that the proof's HMACs are made with")
    try:
        return SealedIdentifiers.of(key, listed["hmacs"])
    except (KeyError, ValueError, TypeError) as error:
        raise OptionError("--verify", name, f"HMACs that kafkalog has written ({error})") from error


def refuse_other_identifiers(
    option: str, found: Mapping[str, Any], identifiers: Sequence[Identifier], key: bytes | None
) -> None:
    """Raise OptionError for identifiers that are not those of a proof, as far as it shows: by their
    number or, with the key, by their HMACs."""
    of_proof = found["identifiers"]
    if key is not None and of_proof["hmacs"] is not None:
        own = {each.hmac(key) for each in identifiers}
        if own != {each["hmac_sha256"] for each in of_proof["hmacs"]}:
            raise OptionError(option, "(not shown)", "the identifiers of the proof: HMACs differ")
    elif len(identifiers) != of_proof["count"]:
        allowed = f"the {of_proof['count']} identifiers of the proof"
        raise OptionError(option, f"{len(identifiers)} identifiers", allowed)
