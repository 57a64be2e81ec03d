"""The page as a whole: one file that asks the network for nothing (docs/decisions/0020)."""

from __future__ import annotations

import json
import os
import secrets
from importlib.resources import files

from kafkalog.report.cluster_section import cluster_section, start_section
from kafkalog.report.contents import Report
from kafkalog.report.damage_section import damage_section
from kafkalog.report.figures import Figure
from kafkalog.report.findings import judged_at, remarks, report_findings, verdict
from kafkalog.report.group_sections import group_section, transaction_section
from kafkalog.report.key_section import key_section
from kafkalog.report.markup import Markup, element, joined, name, paragraph, section
from kafkalog.report.plot import time_label
from kafkalog.report.retention_section import retention_section
from kafkalog.report.storage_sections import compression_section, rate_section, storage_section
from kafkalog.storage.files.output_files import write_file

_NAVIGATION = (
    ("storage", "Storage"),
    ("rate", "Produce rate"),
    ("compression", "Compression"),
    ("keys", "Keys"),
    ("damage", "Damage"),
    ("groups", "Groups"),
    ("transactions", "Transactions"),
    ("retention", "Retention"),
    ("start", "Next start"),
    ("cluster", "Metadata"),
)
_MOST_INPUTS = 8


def page(report: Report) -> str:
    """Return the report as HTML."""
    sections = (
        storage_section(report.storage, report.batches, report.at),
        rate_section(report.batches, report.storage),
        compression_section(report.batches, report.at),
        key_section(report.keys),
        damage_section(report.damage),
        group_section(report.groups),
        transaction_section(report.transactions),
        retention_section(report.retention),
        start_section(report.start),
        cluster_section(report.cluster),
    )
    figures = {key: figure for each in sections for key, figure in each.figures.items()}
    nonce = secrets.token_urlsafe(16)
    body = element(
        "body",
        _header(report),
        element("main", _in_words(report), *(each.markup for each in sections)),
        _footer(report),
        element("noscript", paragraph("Plots need JavaScript; tables and words are all here.")),
        *_scripts(figures, nonce),
    )
    return "<!DOCTYPE html>\n" + element("html", _head(report, nonce), body, lang="en") + "\n"


def _title(report: Report) -> str:
    clusters = [row.cluster_id for row in report.storage.owners if row.cluster_id is not None]
    return f"Cluster {clusters[0]}" if clusters else "Kafka log directories"


def _head(report: Report, nonce: str) -> Markup:
    # Nothing may be fetched, and only the page's own script may run, whatever names contain.
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        element("title", f"{_title(report)}: kafkalog report"),
        element("style", _file("page.css")),
    )


def _header(report: Report) -> Markup:
    brokers = sorted({row.broker_id for row in report.storage.owners if row.broker_id is not None})
    inputs = list(report.inputs[:_MOST_INPUTS])
    left = len(report.inputs) - len(inputs)
    facts = {
        "Read": joined(
            [element("div", name(path)) for path in inputs]
            + ([element("div", f"and {left:,} more")] if left else [])
        ),
        "As of": f"{time_label(report.at.at_ms)} UTC, as all times here",
        "Brokers": ", ".join(map(str, brokers)) or "not known: no meta.properties names one",
        "Holds": verdict(report),
        "By": f"kafkalog {report.version}",
    }
    listed = (part for word, fact in facts.items() for part in (_term(word), _fact(fact)))
    links = (element("a", words, href=f"#{identity}") for identity, words in _NAVIGATION)
    return element(
        "header",
        element("h1", _title(report)),
        element("dl", *listed, class_="facts"),
        element("nav", *links),
    )


def _term(text: str) -> Markup:
    return element("dt", text)


def _fact(text: str) -> Markup:
    return element("dd", text)


def _in_words(report: Report) -> Markup:
    found, more = report_findings(report), [_sentence(judged_at(report)), *remarks(report)]
    parts = []
    if found:
        links = (element("a", each.text, href=f"#{each.place}") for each in found)
        parts.append(element("ul", *(element("li", link) for link in links), class_="findings"))
    else:
        words = "Nothing is damaged, blocked or lagging."
        parts.append(element("p", words, class_="well"))
    parts.append(element("ul", *(element("li", each) for each in more), class_="remarks"))
    return section("words", "In words", *parts)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _footer(report: Report) -> Markup:
    return element(
        "footer",
        f"Made by kafkalog {report.version} from files alone, which it only read. This page holds "
        "all that it shows, and asks the network for nothing.",
    )


def _scripts(figures: dict[str, Figure], nonce: str) -> tuple[Markup, ...]:
    # In JSON "<" is as good escaped, and does not end the element.
    text = Markup(
        json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    )
    return (
        element("script", text, type="application/json", id="figures"),
        element("script", _file("plotly-basic.min.js"), nonce=nonce),
        element("script", _file("page.js"), nonce=nonce),
    )


def _file(name_of: str) -> Markup:
    return Markup(files("kafkalog.report").joinpath("browser", name_of).read_text("utf-8"))


FILE_NAME = "report.html"


def write_report(report: Report, directory: str) -> str:
    """Write the page into a directory, which is made if it is not there, in place of an older one;
    its path. Who reads it meanwhile sees the one or the other. Raises OSError."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, FILE_NAME)
    write_file(path, page(report).encode(), os.fsync)
    return path
