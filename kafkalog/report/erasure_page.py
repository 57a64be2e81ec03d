"""The proof of an erasure as one page in plain words, for people who do not read JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from kafkalog.report.markup import Markup, element, joined, name, paragraph, section, size, table
from kafkalog.words import counted

_MOST_FILES = 1000


def erasure_page(proof: Mapping[str, Any]) -> str:
    """Return the page of a proof."""
    totals = proof["totals"]
    title = f"{counted(totals['erased'], 'record')} erased"
    body = element(
        "body",
        element("header", element("h1", title), element("dl", *_facts(proof), class_="facts")),
        element("main", *_sections(proof)),
        element(
            "footer", f"Made by kafkalog {proof['kafkalog']} from files alone, which it only read."
        ),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("title", f"{title}: kafkalog"),
        element("style", Markup((files("kafkalog.report") / "browser/page.css").read_text())),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _facts(proof: Mapping[str, Any]) -> Iterator[Markup]:
    identifiers = proof["identifiers"]
    kinds = ", ".join(f"{count} of kind {kind}" for kind, count in identifiers["kinds"].items())
    is_signed = proof["signature"] is not None
    facts: dict[str, str] = {
        "When": proof["created"],
        "Read": joined(element("div", name(path)) for path in proof["inputs"]),
        "Written": name(proof["output"]),
        "Looked for": f"{counted(identifiers['count'], 'identifier')} ({kinds}), which this page "
        "does not name",
        "Legal holds": f"{counted(proof['legal_holds']['count'], 'identifier')}, whose "
        f"{counted(proof['totals']['held'], 'record')} stay",
        "Signature": "Ed25519, in a file beside the proof" if is_signed else "none",
    }
    for term, fact in facts.items():
        yield element("dt", term)
        yield element("dd", fact)


def _sections(proof: Mapping[str, Any]) -> Iterator[Markup]:
    totals = proof["totals"]
    yield section(
        "words",
        "In words",
        paragraph(
            f"{totals['records']:,} records in {totals['files']:,} log files were searched. "
            f"{totals['erased']:,} of them are in no file of the new directory. Every other record "
            "is there, under the offset that it had."
        ),
        paragraph(_what_is_not_claimed(totals)),
        element("ul", *(element("li", each) for each in proof["limits"])),
    )
    heads = ("Topic", "Files", "Records", "Erased", "On hold", "Tombstones", "Not searched")
    rows = [
        (
            joined([name(row["topic"]), f" ({row['derived']})" if row["derived"] else ""]),
            *(row[each] for each in ("files", "records", "erased", "held", "tombstones")),
            size(row["unsearched_bytes"]),
        )
        for row in proof["by_topic"]
    ]
    yield section("topics", "Topics", table(heads, rows))
    yield section("files", "Log files", *_files(proof))
    yield section("not-searched", "Not searched", *_not_searched(proof))


def _what_is_not_claimed(totals: Mapping[str, int]) -> str:
    files = totals["unsearched_files"]
    others = (
        f" {counted(files, 'other file')} beside them {'was' if files == 1 else 'were'} not "
        "searched, and nothing is claimed about what is in them."
        if files
        else ""
    )
    if not totals["unsearched_bytes"] and not totals["undecoded"]:
        return f"Every batch of these log files was searched.{others}"
    return (
        f"{totals['unsearched_bytes']:,} bytes of these log files could not be searched, and "
        f"{totals['undecoded']:,} values could not be decoded: nothing is claimed about them."
        f"{others}"
    )


def _files(proof: Mapping[str, Any]) -> Iterator[Markup]:
    logs = proof["log_files"]
    yield paragraph(f"{len(logs):,} log files; the first {_MOST_FILES:,} that changed are here. "
                    "SHA-256 of all is in the proof.")  # fmt: skip
    changed = [each for each in logs if each["sha256_before"] != each["sha256_after"]]
    heads = ("New file", "Erased", "Batches", "Bytes before", "Bytes after", "SHA-256 after")
    rows = [
        (
            name(each["output"]),
            *(each["erased"], each["batches_written_again"]),
            *(each["bytes_before"], each["bytes_after"]),
            each["sha256_after"],
        )
        for each in changed[:_MOST_FILES]
    ]
    yield table(heads, rows)


def _not_searched(proof: Mapping[str, Any]) -> Iterator[Markup]:
    rows = [
        (name(each["output"]), place["position"], place["bytes"], place["why"])
        for each in proof["log_files"]
        for place in each["not_searched"]
    ]
    rows += [
        (name(each["file"]), None, each["bytes"], each["why"])
        for each in proof["not_searched"]
        if not each["why"].startswith("not a log:")
    ]
    if not rows:
        yield paragraph("Nothing, but for indexes, checkpoints and the like.")
        return
    yield table(("File", "Position", "Bytes", "Why"), rows[:_MOST_FILES])
