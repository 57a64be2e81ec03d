"""Figures for plotly, as the plain values that its library takes: https://plotly.com/javascript/.

Colours are those of Okabe and Ito, which colour-blind people can distinguish; bars and areas have a
pattern as well, lines a dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

Figure = dict[str, Any]

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442")
REST = "#8a8a8a"
PATTERNS = ("", "/", "\\", "x", "-", "|", "+")
REST_PATTERN = "."
_INK = "#1f2933"
_FAINT = "#d5dbe1"
_AROUND_MS = 30_000
_BAR_HEIGHT = 26
_SPARE_HEIGHT = 96


class Series(NamedTuple):
    """Values of one name, in the order of the figure's places; the text under the mouse for each.
    The name is in the legend, but "" where the figure's title says it all."""

    name: str
    values: Sequence[float | None]
    texts: Sequence[str]
    is_rest: bool = False


def horizontal_bars(
    labels: Sequence[str], series: Sequence[Series], title: str, most: float | None = None
) -> Figure:
    """Return bars beside their labels, from the top down, the parts of a bar side by side; `most`
    is where the axis ends, by itself for None."""
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": each.name,
            "y": list(range(len(labels))),
            "x": list(each.values),
            "hovertext": list(each.texts),
            "hoverinfo": "text",
            "marker": _fill(number, each.is_rest),
        }
        for number, each in enumerate(series)
    ]
    height = _SPARE_HEIGHT + _BAR_HEIGHT * len(labels)
    layout = _layout(height, has_legend=_are_named(series)) | {
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": _axis(title=title, rangemode="tozero", nticks=5)
        | ({} if most is None else {"range": [0, most]}),
        "yaxis": _axis(
            tickvals=list(range(len(labels))),
            ticktext=list(labels),
            range=[len(labels) - 0.5, -0.5],
            showgrid=False,
            zeroline=False,
        ),
    }
    return {"data": data, "layout": layout}


def bars(places: Sequence[str], series: Sequence[Series], title: str, axis: str) -> Figure:
    """Return upright bars over named places."""
    data = [
        {
            "type": "bar",
            "name": each.name,
            "x": list(places),
            "y": list(each.values),
            "hovertext": list(each.texts),
            "hoverinfo": "text",
            "marker": _fill(number, each.is_rest),
        }
        for number, each in enumerate(series)
    ]
    layout = _layout(320, has_legend=_are_named(series)) | {
        "barmode": "stack",
        "xaxis": _axis(title=axis, type="category", showgrid=False),
        "yaxis": _axis(title=title, rangemode="tozero", nticks=5),
    }
    return {"data": data, "layout": layout}


def bars_over_time(
    begins_ms: Sequence[int], every_ms: int, series: Sequence[Series], title: str
) -> Figure:
    """Return bars over stretches of time that begin then."""
    data = [
        {
            "type": "bar",
            "name": each.name,
            "x": [plot_time(begin + every_ms // 2) for begin in begins_ms],
            "width": every_ms,
            "y": list(each.values),
            "hovertext": list(each.texts),
            "hoverinfo": "text",
            "marker": _fill(number, each.is_rest),
        }
        for number, each in enumerate(series)
    ]
    ends = [begins_ms[0], begins_ms[-1] + every_ms]
    layout = _layout(320, has_legend=_are_named(series)) | {
        "barmode": "stack",
        "bargap": 0,
        "xaxis": _time_axis(ends),
        "yaxis": _axis(title=title, rangemode="tozero", nticks=5),
    }
    return {"data": data, "layout": layout}


def areas_over_time(times_ms: Sequence[int], series: Sequence[Series], title: str) -> Figure:
    """Return areas on top of each other."""
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "stackgroup": "all",
            "name": each.name,
            "x": [plot_time(time) for time in times_ms],
            "y": list(each.values),
            "hovertext": list(each.texts),
            "hoverinfo": "text",
            "line": {"color": _colour(number, each.is_rest), "width": 1, "shape": "linear"},
            "fillcolor": _colour(number, each.is_rest),
            "fillpattern": {
                "shape": _pattern(number, each.is_rest),
                "bgcolor": _colour(number, each.is_rest),
                "fgcolor": "#ffffff",
                "size": 8,
                "solidity": 0.25,
            },
        }
        for number, each in enumerate(series)
    ]
    layout = _layout(320, has_legend=_are_named(series)) | {
        "xaxis": _time_axis([times_ms[0], times_ms[-1]]),
        "yaxis": _axis(title=title, rangemode="tozero", nticks=5),
    }
    return {"data": data, "layout": layout}


class Marks(NamedTuple):
    """Moments that a line has marks at, and the text under the mouse for each."""

    name: str
    times_ms: Sequence[int]
    texts: Sequence[str]


def line_over_time(
    times_ms: Sequence[int], line: Series, marks: Marks, title: str, most: float
) -> Figure:
    """Return a line with a point at each time, and triangles above it at marked moments."""
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": line.name,
            "x": [plot_time(time) for time in times_ms],
            "y": list(line.values),
            "hovertext": list(line.texts),
            "hoverinfo": "text",
            "connectgaps": False,
            "line": {"color": COLOURS[0], "width": 2},
            "marker": {"size": 4},
        }
    ]
    top = max(most, 1) * 1.12
    if marks.times_ms:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": marks.name,
                "x": [plot_time(time) for time in marks.times_ms],
                "y": [top * 0.96] * len(marks.times_ms),
                "hovertext": list(marks.texts),
                "hoverinfo": "text",
                "marker": {"symbol": "triangle-down", "size": 11, "color": COLOURS[3]},
            }
        )
    layout = _layout(240, has_legend=bool(marks.times_ms)) | {
        "xaxis": _time_axis([*times_ms, *marks.times_ms], spare=0.03),
        "yaxis": _axis(title=title, range=[0, top], nticks=4),
    }
    return {"data": data, "layout": layout}


def plot_time(time_ms: int) -> str:
    """Return a time as plotly reads it, UTC."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def _are_named(series: Sequence[Series]) -> bool:
    return any(each.name for each in series)


def _colour(number: int, is_rest: bool) -> str:
    return REST if is_rest else COLOURS[number % len(COLOURS)]


def _pattern(number: int, is_rest: bool) -> str:
    return REST_PATTERN if is_rest else PATTERNS[number % len(PATTERNS)]


def _fill(number: int, is_rest: bool) -> dict[str, Any]:
    pattern = {
        "shape": _pattern(number, is_rest),
        "fgcolor": "#ffffff",
        "bgcolor": _colour(number, is_rest),
        "size": 6,
        "solidity": 0.3,
    }
    return {"color": _colour(number, is_rest), "line": {"width": 0}, "pattern": pattern}


def _layout(height: int, *, has_legend: bool) -> dict[str, Any]:
    return {
        "height": height + (40 if has_legend else 0),
        "autosize": True,
        "margin": {"l": 8, "r": 12, "t": 10, "b": 8},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": has_legend,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "itemclick": False,
            "traceorder": "normal",
        },
        "hoverlabel": {"align": "left"},
    }


def _axis(*, title: str | None = None, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "automargin": True,
        "gridcolor": _FAINT,
        "zerolinecolor": _FAINT,
        "linecolor": _FAINT,
    }
    if title is not None:
        found["title"] = {"text": title, "standoff": 6}
    return found | settings


def _time_axis(times_ms: Sequence[int], spare: float = 0) -> Mapping[str, Any]:
    """`spare` is how much is left free at both ends, of all between them."""
    begin, end = min(times_ms), max(times_ms)
    # Around a single moment there has to be something, for an axis to have a length.
    free = round((end - begin) * spare) or (_AROUND_MS if begin == end else 0)
    ends = [plot_time(max(begin - free, 0)), plot_time(end + free)]
    return _axis(type="date", range=ends, nticks=5, showgrid=False, tickangle=0)
