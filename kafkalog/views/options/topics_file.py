"""`--topics-file`: a YAML file with the options of each topic, for one run over all of them.

    defaults:
      format: delta
      partition_by: [day]
    topics:
      orders:
        value_format: confluent-avro
        schemas_topic: /mnt/broker2/kafka-logs
      payments:
        value_format: json
        value_schema: schemas/payments.json
        table: lake.raw.payments

The keys are the options of the command, with dashes or underscores. Rules: docs/ingest.md F1090 to
F1092.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kafkalog.errors import ConflictingOptionsError, OptionError, RefusedOptionError
from kafkalog.views.options.click_options import Decorator
from kafkalog.views.options.option_names import usage_error_text
from kafkalog.views.options.parameter_types import GivenPath
from kafkalog.words import name_suggestions

OPTION = "--topics-file"
_PARAMETER = "topics_file"
_DEFAULTS, _TOPICS = "defaults", "topics"
# What a topic of its own cannot have.
_OF_ALL = {"topics", "topic_pattern", "offsets", "starting_offsets_out", _PARAMETER, "help"}
_PER_TOPIC, _TABLE = "table_per_topic", "table"


@dataclass(frozen=True, slots=True)
class TopicRun:
    """A run of the command for topics with the same options: its parameters, as click parsed
    them."""

    topics: tuple[str, ...]
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """The topics, for messages."""
        return ", ".join(self.topics)

    def invoked(self, context: click.Context) -> int:
        """Run the command; return its exit code."""
        callback = context.command.callback
        return int(context.invoke(callback, **self.parameters)) if callback else 0


def topics_file_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --topics-file, received as `topics_file`."""
    option: Decorator = click.option(
        OPTION,
        metavar="FILE",
        type=GivenPath(),
        help="YAML file with the options of each topic, for one run over all of them; each topic "
        "gets a table with its name, unless it names another.",
    )
    return option(function)


def topic_runs(path: str, context: click.Context) -> list[TopicRun]:
    """Return the runs that a file asks for, one for all topics with the same options, in the order
    of the file. Options of the command line hold where the file has none.

    Raises OptionError for a file that cannot be read, an unknown option or a value that is not
    allowed, and for options of the command line that leave topics out.
    """
    for name in _OF_ALL - {_PARAMETER, "help"}:
        source = context.get_parameter_source(name)
        if source is ParameterSource.COMMANDLINE:
            option = next(each.opts[0] for each in context.command.params if each.name == name)
            raise ConflictingOptionsError(OPTION, option)
    options = {each.name: each for each in context.command.params if each.name not in _OF_ALL}
    defaults, topics = _contents(path)
    given = _named(path, _DEFAULTS, defaults, options)
    alike: dict[str, list[str]] = defaultdict(list)
    for topic, own in topics.items():
        named = {_PER_TOPIC: True} | given | _named(path, f"{_TOPICS}.{topic}", own, options)
        if named.get(_TABLE):
            named.pop(_PER_TOPIC)
        alike[json.dumps(named, default=str, sort_keys=True)].append(topic)
    return [_run(path, topics, json.loads(text), context) for text, topics in alike.items()]


def worst_code(codes: Iterable[int]) -> int:
    """Return the exit code for all runs. A run that was stopped is the last."""
    worst = 0
    for code in codes:
        worst = max(worst, code)
        if code > _MOST:
            break
    return worst


# Of exit codes that say something of the input or the arguments.
_MOST = 3


def _contents(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the defaults, and the options of each topic."""
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(OPTION, path, f"a file that can be read: {error}") from error
    except yaml.YAMLError as error:
        raise OptionError(OPTION, path, f"YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict) or not isinstance(found.get(_TOPICS), dict):
        raise OptionError(OPTION, path, f"a mapping with {_TOPICS}: each with its options")
    unknown = [str(key) for key in found if key not in (_DEFAULTS, _TOPICS)]
    if unknown:
        raise OptionError(f"{OPTION} {path}", unknown[0], [_DEFAULTS, _TOPICS])
    topics = {str(name): options or {} for name, options in found[_TOPICS].items()}
    if not topics:
        raise OptionError(OPTION, path, f"at least one topic below {_TOPICS}")
    return found.get(_DEFAULTS) or {}, topics


def _named(
    path: str, place: str, given: Any, options: Mapping[str, click.Parameter]
) -> dict[str, Any]:
    """Return values by the parameters' names."""
    if not isinstance(given, dict):
        raise OptionError(f"{OPTION} {path}: {place}", given, "a mapping of options to values")
    by_option = {
        option.removeprefix("--").replace("-", "_"): name
        for name, each in options.items()
        if isinstance(each, click.Option)
        for option in each.opts
    }
    found = {}
    for key, value in given.items():
        name = by_option.get(str(key).replace("-", "_"))
        if name is None:
            allowed = f"an option; {name_suggestions([str(key)], by_option)}"
            raise OptionError(f"{OPTION} {path}: {place}", key, allowed)
        if isinstance(value, list) and not getattr(options[name], "multiple", False):
            raise OptionError(f"{OPTION} {path}: {place}.{key}", value, "one value")
        found[name] = value
    return found


def _run(
    path: str, topics: Sequence[str], named: Mapping[str, Any], context: click.Context
) -> TopicRun:
    options = {each.name: each for each in context.command.params}
    given = {name: value for name, value in named.items() if value is not None}
    arguments = [part for name, value in given.items() for part in _text(options[name], value)]
    place = f"{OPTION} {path}: {', '.join(topics)}"
    try:
        own = click.Context(context.command, info_name=context.info_name)
        # Not the command's own way to parse, which wants what the command line has.
        parser = context.command.make_parser(own)
        values, _, order = parser.parse_args(arguments)
        for each in dict.fromkeys(order):
            if each.name in given:
                each.handle_parse_result(own, values, [])
    except click.UsageError as error:
        raise RefusedOptionError(place, usage_error_text(error)) from error
    # A flag without an opposite has no argument where it is false.
    parsed = {name: own.params.get(name, False) for name in given}
    parsed |= {name: _default(options[name], own) for name in named.keys() - given.keys()}
    return TopicRun(
        tuple(topics), {**context.params, **parsed, "topics": tuple(topics), _PARAMETER: None}
    )


def _default(option: click.Parameter, context: click.Context) -> Any:
    """Return the value of an option that is not given."""
    default = option.to_info_dict().get("default")
    if default is None:
        return () if getattr(option, "multiple", False) else None
    return option.type_cast_value(context, default)


def _text(option: click.Parameter, value: Any) -> list[str]:
    """Return a value as arguments of a command line."""
    name = option.opts[0]
    if isinstance(option, click.Option) and option.is_flag:
        if value:
            return [name]
        return option.secondary_opts[:1]
    values = value if isinstance(value, list) else [value]
    return [part for each in values for part in (name, _scalar(each))]


def _scalar(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)
