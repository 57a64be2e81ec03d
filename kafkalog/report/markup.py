"""HTML whose texts are escaped unless they are markup already; how names from files are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from kafkalog.words import printable, size_text

_LONGEST = 80
# Of a sentence with two paths.
ROOM_FOR_PATHS = 2_000
# In a plot, where a phone has room for so much beside the bars.
_LONGEST_LABEL = 22


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """Return an element. Children are escaped unless they are Markup, values of attributes always;
    an attribute's name may end in "_", and is written without a value for "", not at all for
    None."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Markup:
    """Return the parts joined; those that are not Markup are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def visible(text: str, longest: int = _LONGEST) -> str:
    """Return a text from a file in which nothing is invisible or turns the direction of writing,
    shortened in the middle."""
    seen = printable(text)
    if len(seen) <= longest:
        return seen
    head = (longest - 1) // 2
    return f"{seen[:head]}…{seen[-(longest - 1 - head) :]}"


def name(text: str | None) -> Markup:
    """Return a name from a file, kept apart from the text around it; `?` for none."""
    return element("bdi", "?" if text is None else visible(text), class_="name")


def place_of(kind: str, text: str | None) -> str:
    """Return where a link to a name of this kind leads: `group-billing`."""
    return f"{kind}-{quote('?' if text is None else text, safe='', errors='replace')}"


def anchor(kind: str, text: str | None) -> Markup:
    """Return a name from a file that links can lead to, and that is a link to itself."""
    identity = place_of(kind, text)
    return element("a", name(text), id=identity, href=f"#{identity}", class_="here")


def label(text: str | None) -> str:
    """Return a name from a file for a plot, which knows some markup itself."""
    return escape("?" if text is None else visible(text, _LONGEST_LABEL), quote=False)


def paragraph(*children: str) -> Markup:
    """Return a paragraph."""
    return element("p", *children)


def table(heads: Sequence[str], rows: Iterable[Sequence[str | int | None]]) -> Markup:
    """Return a table; numbers to the right, an empty cell for None."""
    head = element("tr", *(element("th", each) for each in heads))
    body = (element("tr", *map(_cell, row)) for row in rows)
    whole = element("table", element("thead", head), element("tbody", *body))
    return element("div", whole, class_="table")


def _cell(value: str | int | None) -> Markup:
    if value is None:
        return element("td", "")
    if isinstance(value, int):
        return element("td", f"{value:,}", class_="number")
    return element("td", value)


def folded(title: str, found: Markup, shown: int, every: int) -> Markup:
    """Return a long table that is shown when its title is clicked; nothing for an empty one."""
    if not every:
        return Markup("")
    words = f"{title}: {every:,}" if shown == every else f"{title}: {shown:,} of {every:,}"
    return element("details", element("summary", words), found)


def size(count: int) -> Markup:
    """Return a number of bytes in its unit, which a table is sorted by the number of."""
    return element("data", size_text(count), value=str(count))


def section(identity: str, title: str, *children: str) -> Markup:
    """Return a section of the page, which its table of contents leads to."""
    head = element("h2", element("a", title, href=f"#{identity}", class_="here"))
    return element("section", head, *children, id=identity)
