"""`kafkalog erase`: log directories without a person's records, and a proof of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from kafkalog import __version__
from kafkalog.command_line.answer_output import exit_code, write_answer, write_verdict
from kafkalog.command_line.terminal import print_note, printed_columns, table_format_option
from kafkalog.errors import ConflictingOptionsError, OptionError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted, time_text

if TYPE_CHECKING:
    from kafkalog.inspection.erasure.identifiers import Identifier
    from kafkalog.inspection.erasure.input_files import InputEntry
    from kafkalog.questions.disks.erasure import Erasure, ErasureRequest
    from kafkalog.questions.disks.erasure_proof import ProofRequest

_COLUMNS = {
    "topic": (
        *("topic", "files", "records", "matches", "erased", "held", "tombstones", "mentions"),
        *("undecoded", "unsearched_bytes", "bytes", "derived"),
    ),
    "file": (
        *("topic", "partition", "mark", "records", "matches", "erased", "held", "tombstones"),
        *("batches", "mentions", "undecoded", "unsearched_bytes", "bytes", "first_offset"),
        *("end_offset", "file"),
    ),
    "record": (
        *("topic", "partition", "offset", "timestamp_ms", "value_size", "is_held", "position"),
        "file",
    ),
}
_TEXTS: dict[str, Callable[[Any], str]] = {"timestamp_ms": time_text}

_EPILOG = """\
\b
PATH is a log directory of a stopped broker, a backup of one, a directory of
tiered storage, or a folder with several of these. All of it is searched: each
replica, files that brokers have marked (.deleted, -delete, -stray), former
topics. Inputs are only read: the new directory has everything but the records.

\b
FILE of --identifiers and --keep has a key per line, or a JSON object per line:
  cust-17
  {"header": "user", "value": "cust-17"}
  {"value-path": "$.customer.id", "value": "cust-17"}
  {"key-path": "$.id", "value": "cust-17"}
  {"text": "cust-17@example.org"}

Other users of the machine see what is on the command line: give a FILE, or - for stdin. Findings
are records that are there, and what could not be searched. See docs/erasure.md.

\b
Examples:
  kafkalog erase /data/kafka --identifiers person.txt --check
  kafkalog erase /data/kafka --identifiers person.txt --check --by record
  kafkalog erase /data/kafka --identifiers person.txt --to /data/new --proof proof.json
  kafkalog erase --verify proof.json --identifiers person.txt /data/new /mnt/backup
  kafkalog erase --verify proof.json --hmac-key secret /data/new s3://tier/kafka
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--identifiers",
    "identifiers_file",
    metavar="FILE",
    type=GivenPath(),
    help="What the records are known by, one per line; - for stdin.",
)
@click.option("--key", "-k", "keys", metavar="KEY", multiple=True, help="Records with this key.")
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Records with this header."
)
@click.option(
    "--key-path",
    "key_paths",
    metavar="PATH=VALUE",
    multiple=True,
    help="Records whose key, decoded, has this at a path: '$.id=cust-17'.",
)
@click.option(
    "--value-path",
    "value_paths",
    metavar="PATH=VALUE",
    multiple=True,
    help="Records whose value, decoded, has this at a path: '$.customer.id=cust-17'.",
)
@click.option(
    "--text",
    "texts",
    metavar="BYTES",
    multiple=True,
    help="Records with these bytes in the key, the value or a header: text, hex:… or base64:….",
)
@click.option(
    "--schema-registry",
    metavar="URL|DIR",
    help="Decode what a registry's serializers have written by the schemas of the registry at this "
    "URL, or of files named by their ids, such as DIR/7.avsc; without it by those in _schemas, if "
    "PATHs have it.",
)
@click.option(
    "--keep",
    "keep_file",
    metavar="FILE",
    type=GivenPath(),
    help="Legal holds: records of these identifiers stay, and are counted.",
)
@shared.topic_option("Search only this topic; repeatable. The others are copied as they are.")
@shared.topic_pattern_option()
@click.option(
    "--check",
    is_flag=True,
    help="Show what would be removed, and write nothing. With --to, refuse what the run is "
    "refused for.",
)
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=GivenPath(),
    help="The new directory; it must not exist. With several PATHs, it has a folder for each.",
)
@click.option("--proof", "proof_file", metavar="FILE", type=GivenPath(), help="Write a proof.")
@click.option(
    "--page", "page_file", metavar="FILE", type=GivenPath(), help="Write the proof as a page, too."
)
@click.option(
    "--hmac-key",
    "hmac_key_file",
    metavar="FILE",
    type=GivenPath(),
    help="A file with a secret: the proof then has the identifiers' HMACs with it.",
)
@click.option(
    "--sign-key",
    "sign_key_file",
    metavar="FILE",
    type=GivenPath(),
    help="A private Ed25519 key as PEM: the proof's signature goes to a file beside it, .sig.",
)
@click.option(
    "--verify",
    "verified_file",
    metavar="PROOF",
    type=GivenPath(),
    help="Search PATHs again, and compare them with a proof.",
)
@shared.by_option(tuple(_COLUMNS), "Print a row per topic, per log file or per record.")
@shared.show_option("rows as text; JSON and CSV have all", default=100)
@shared.fail_on_findings_option(default=True)
@table_format_option
@shared.processes_option
def erase(
    paths: Sequence[str],
    identifiers_file: str | None,
    keys: Sequence[str],
    headers: Sequence[str],
    key_paths: Sequence[str],
    value_paths: Sequence[str],
    texts: Sequence[str],
    schema_registry: str | None,
    keep_file: str | None,
    topics: Sequence[str],
    topic_pattern: str | None,
    check: bool,
    target: str | None,
    proof_file: str | None,
    page_file: str | None,
    hmac_key_file: str | None,
    sign_key_file: str | None,
    verified_file: str | None,
    by: str,
    show: int,
    fail_on_findings: bool,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Write log directories without a person's records, and a proof of it."""
    from kafkalog.questions.disks.erasure import listed_files

    names = printed_columns(_COLUMNS[by])
    _refuse_contradictions(check, target, verified_file, proof_file, page_file, sign_key_file)
    sought = _identifiers(identifiers_file, keys, headers, key_paths, value_paths, texts)
    held = _of_file("--keep", keep_file)
    output = _Output(names, by, show, table_format, fail_on_findings)
    request = _request(paths, sought, held, schema_registry, topics, topic_pattern)
    hmac_key = None if hmac_key_file is None else _secret(hmac_key_file)
    if verified_file is not None:
        return _verify(verified_file, request, hmac_key, processes, output)
    if not sought:
        raise click.UsageError(
            "Missing option '--identifiers', '--key', '--header', '--key-path', '--value-path' or "
            "'--text'."
        )
    if target is None:
        return _check(request, listed_files(request), processes, output)
    files = _Files(proof_file, page_file, sign_key_file)
    proof_request = _proof_request(files, hmac_key)
    entries = _writable_files(request, target)
    if check:
        return _check(request, entries, processes, output)
    return _erase(request, entries, target, proof_request, files, processes, output)


class _Output:
    """How rows and the last line are written."""

    def __init__(
        self, names: Sequence[str], by: str, show: int, table_format: str, fails: bool
    ) -> None:
        self._names, self._by, self._show = names, by, show
        self._format, self._fails = table_format, fails

    def write(self, erasure: Erasure | None) -> None:
        """Write the rows, and notes to stderr."""
        if erasure is None:
            return
        rows: Sequence[Mapping[str, Any]]
        if self._by == "topic":
            rows = erasure.topic_rows()
        else:
            rows = erasure.file_rows() if self._by == "file" else [*erasure.record_rows()]
        write_answer(self._names, rows, self._format, show=self._show, texts=_TEXTS)
        for line in erasure.notes():
            print_note(line)

    def end(self, verdict: str, *, has_findings: bool) -> ExitCode:
        """Write the last line, and return the exit code."""
        write_verdict(verdict, self._format, has_findings=has_findings)
        return exit_code(has_findings=has_findings, fails=self._fails)


class _Files:
    """The files that are written beside the new directory."""

    def __init__(self, proof: str | None, page: str | None, sign_key: str | None) -> None:
        self.proof, self.page, self.sign_key = proof, page, sign_key

    @property
    def are_wanted(self) -> bool:
        return bool(self.proof or self.page)


def _refuse_contradictions(
    check: bool,
    target: str | None,
    verified_file: str | None,
    proof_file: str | None,
    page_file: str | None,
    sign_key_file: str | None,
) -> None:
    deeds = {"--check": check, "--to": target}
    given = [name for name, value in deeds.items() if value]
    if verified_file and given:
        raise ConflictingOptionsError(given[0], "--verify")
    if not verified_file and not given:
        raise click.UsageError("Missing option '--check', '--to' or '--verify'.")
    for name, value in (("--proof", proof_file), ("--page", page_file)):
        if value and target is None:
            raise RefusedOptionError(name, "only with --to: it is about what was written")
    if sign_key_file and not proof_file:
        raise RefusedOptionError("--sign-key", "only with --proof")


def _identifiers(
    file: str | None,
    keys: Sequence[str],
    headers: Sequence[str],
    key_paths: Sequence[str],
    value_paths: Sequence[str],
    texts: Sequence[str],
) -> list[Identifier]:
    from kafkalog.inspection.erasure.identifiers import Kind, of_option

    given = (
        ("--key", Kind.KEY, keys),
        ("--header", Kind.HEADER, headers),
        ("--key-path", Kind.KEY_PATH, key_paths),
        ("--value-path", Kind.VALUE_PATH, value_paths),
        ("--text", Kind.TEXT, texts),
    )
    found = [of_option(name, kind, text) for name, kind, each in given for text in each]
    return [*dict.fromkeys([*_of_file("--identifiers", file), *found])]


def _of_file(option: str, path: str | None) -> list[Identifier]:
    from kafkalog.inspection.erasure.identifiers import of_lines

    if path is None:
        return []
    if path == "-" or path.endswith("/-"):
        return of_lines(option, sys.stdin.buffer)
    try:
        with open(path, "rb") as file:
            return of_lines(option, file)
    except OSError as error:
        raise OptionError(option, path, f"a file that can be read ({error.strerror})") from error


def _secret(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            secret = file.read().strip()
    except OSError as error:
        allowed = f"a file that can be read ({error.strerror})"
        raise OptionError("--hmac-key", path, allowed) from error
    if len(secret) < 16:
        allowed = "a file with 16 bytes or more, made by: openssl rand -hex 32"
        raise OptionError("--hmac-key", path, allowed)
    return secret


def _request(
    paths: Sequence[str],
    sought: Sequence[Identifier],
    held: Sequence[Identifier],
    registry: str | None,
    topics: Sequence[str],
    topic_pattern: str | None,
) -> ErasureRequest:
    from kafkalog.inspection.erasure.file_search import Wanted
    from kafkalog.inspection.erasure.registered_values import registered_values
    from kafkalog.questions.disks.erasure import ErasureRequest

    decoders = () if registry is None else (registered_values(registry),)
    wanted = Wanted(sought, held, decoders)
    return ErasureRequest(paths, wanted, topics, topic_pattern)


def _proof_request(files: _Files, hmac_key: bytes | None) -> ProofRequest:
    from kafkalog.questions.disks.erasure_proof import ProofRequest
    from kafkalog.questions.disks.erasure_signature import public_key_of
    from kafkalog.storage.files.output_files import refuse_unwritable_file

    for name, path in (("--proof", files.proof), ("--page", files.page)):
        if path is not None:
            refuse_unwritable_file(name, path)
    public_key = None if files.sign_key is None else public_key_of("--sign-key", files.sign_key)
    return ProofRequest(time.time_ns() // 1_000_000, __version__, hmac_key, public_key)


def _searched(
    request: ErasureRequest, entries: Sequence[InputEntry], processes: int | None
) -> Erasure:
    from kafkalog.questions.disks.erasure import search_files

    size = sum(entry.size for entry in entries if request.has_topic(entry.topic))
    with progress_bar(size, "searching") as bar:
        return search_files(request, entries, processes=processes, on_done=bar.update)


def _check(
    request: ErasureRequest, entries: Sequence[InputEntry], processes: int | None, output: _Output
) -> ExitCode:
    erasure = _searched(request, entries, processes)
    output.write(erasure)
    has_findings = bool(erasure.totals.matches) or not erasure.is_complete
    return output.end(f"{erasure.words()}; nothing is written", has_findings=has_findings)


def _writable_files(request: ErasureRequest, target: str) -> list[InputEntry]:
    """Return the files of the inputs. Raise what a run is refused for before it searches."""
    from kafkalog.questions.disks.erased_directories import refuse_running_brokers
    from kafkalog.questions.disks.erasure import listed_files
    from kafkalog.storage.files.output_files import refuse_existing_directory
    from kafkalog.storage.log_dir.read_directories import refuse_inside

    refuse_existing_directory("--to", target)
    entries = listed_files(request)
    refuse_inside("--to", target, dict.fromkeys(entry.input_path for entry in entries))
    refuse_running_brokers(entries)
    return entries


def _erase(
    request: ErasureRequest,
    entries: Sequence[InputEntry],
    target: str,
    proof_request: ProofRequest,
    files: _Files,
    processes: int | None,
    output: _Output,
) -> ExitCode:
    from kafkalog.questions.disks.erased_directories import refuse_running_brokers, write_erased
    from kafkalog.storage.files.whole_directory import whole_directory

    erasure = _searched(request, entries, processes)
    output.write(erasure)
    with whole_directory(target, os.fsync) as scratch:
        with progress_bar(sum(entry.size for entry in entries), "writing") as bar:
            written = write_erased(
                erasure, scratch, hashes=files.are_wanted, processes=processes, on_done=bar.update
            )
        refuse_running_brokers(entries)
    # Now the directory is there. A run that is killed leaves no proof of one that is not.
    if files.are_wanted:
        folders = scratch, os.path.abspath(target)
        _write_proof(erasure, written, folders, proof_request, files)
    totals = erasure.totals
    verdict = f"{counted(totals.erased, 'record')} erased: {erasure.words()}; written: {target}"
    return output.end(verdict, has_findings=not erasure.is_complete)


def _write_proof(
    erasure: Erasure,
    written: Sequence[Any],
    target: tuple[str, str],
    request: ProofRequest,
    files: _Files,
) -> None:
    from kafkalog.questions.disks.erasure_proof import proof, proof_bytes
    from kafkalog.questions.disks.erasure_signature import SIGNATURE, signed
    from kafkalog.report.erasure_page import erasure_page
    from kafkalog.storage.files.output_files import write_file

    found = proof(erasure, written, target, request)
    if files.proof is not None:
        data = proof_bytes(found)
        if files.sign_key is not None:
            write_file(files.proof + SIGNATURE, signed(files.sign_key, data), os.fsync)
        write_file(files.proof, data, os.fsync)
    if files.page is not None:
        write_file(files.page, erasure_page(found).encode(), os.fsync)


def _verify(
    path: str,
    request: ErasureRequest,
    hmac_key: bytes | None,
    processes: int | None,
    output: _Output,
) -> ExitCode:
    from kafkalog.questions.disks.erasure import listed_files
    from kafkalog.questions.disks.erasure_proof import (
        compared,
        read_proof,
        refuse_other_identifiers,
        sealed_identifiers,
    )

    found = read_proof("--verify", path)
    signature = _signature_words(path, found)
    entries = listed_files(request)
    verification = compared(found, entries, processes=processes)
    wanted = request.wanted
    if wanted.identifiers:
        refuse_other_identifiers("--identifiers", found, wanted.identifiers, hmac_key)
    elif hmac_key is not None:
        sealed = sealed_identifiers("--hmac-key", found, "identifiers", hmac_key)
        holds = sealed_identifiers("--hmac-key", found, "legal_holds", hmac_key)
        request = replace(request, wanted=replace(wanted, sealed=sealed, sealed_holds=holds))
        verification.unsearched_texts = 0 if sealed is None else sealed.texts
    if request.wanted.identifiers or request.wanted.sealed:
        verification.erasure = _searched(request, entries, processes)
    output.write(verification.erasure)
    for each in verification.changed:
        print_note(f"not in the proof: {each}")
    for each in verification.missing:
        print_note(f"in the proof, and not here: {each}")
    is_forged = signature.startswith("THE SIGNATURE")
    verdict = f"{verification.words()}; {signature}"
    return output.end(verdict, has_findings=verification.has_findings or is_forged)


def _signature_words(path: str, found: Mapping[str, Any]) -> str:
    from kafkalog.questions.disks.erasure_signature import SIGNATURE, is_signed

    if found.get("signature") is None:
        return "the proof is not signed"
    try:
        with open(path, "rb") as file, open(path + SIGNATURE, "rb") as signature_file:
            data, signature = file.read(), signature_file.read()
    except OSError:
        return f"THE SIGNATURE IS MISSING: {path}{SIGNATURE}"
    is_right = is_signed(str(found["signature"]["public_key"]), data, signature)
    return "its signature is right" if is_right else "THE SIGNATURE IS WRONG"
