"""The help of a command that fits a terminal, and with --help-all all of it.

`--help` shows the usage, what the command does, examples, and the names of the options; rules:
decision 73.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

import click

# So many lines has a terminal.
MOST_LINES = 24
_EXAMPLES = "Examples:"
_HELP_ALL = "--help-all"


class HelpedCommand(click.Command):
    """A command whose --help is short where all of it does not fit."""

    @classmethod
    def of(cls, command: click.Command) -> HelpedCommand:
        """Return a command with short help and with --help-all."""
        show_all = click.Option(
            [_HELP_ALL],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            hidden=True,
            callback=_show_all,
        )
        return cls(
            command.name,
            context_settings=command.context_settings,
            callback=command.callback,
            params=[*command.params, show_all],
            help=command.help,
            epilog=command.epilog,
            short_help=command.short_help,
            options_metavar=command.options_metavar,
            add_help_option=command.add_help_option,
            no_args_is_help=command.no_args_is_help,
            hidden=command.hidden,
            deprecated=command.deprecated,
        )

    def format_help(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        whole = full_help(self, context)
        if len(whole.splitlines()) <= MOST_LINES:
            formatter.write(whole)
            return
        self.format_usage(context, formatter)
        formatter.write_paragraph()
        # Names are not divided at their dashes.
        text = " ".join((self.help or "").split("\n\n")[0].split())
        lines = wrap(
            text,
            formatter.width,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        formatter.write("\n".join((*lines, "")))
        names = wrap(
            f"Options: {', '.join(_names(self))}",
            formatter.width,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        hint = f"{context.command_path} {_HELP_ALL} explains them, and what is printed."
        # Three empty lines and the title of the examples are there too.
        left = MOST_LINES - len(formatter.getvalue().splitlines()) - len(names) - 5
        examples = list(_examples(self))[: max(left, 1)]
        shown = ["", f"  {_EXAMPLES}", *(f"  {each}" for each in examples)] if examples else []
        formatter.write("\n".join((*shown, "", *names, "", hint, "")))


def full_help(command: click.Command, context: click.Context) -> str:
    """Return the help with all options."""
    formatter = context.make_formatter()
    click.Command.format_help(command, context, formatter)
    return formatter.getvalue().rstrip("\n") + "\n"


def _show_all(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        click.echo(full_help(context.command, context), nl=False, color=context.color)
        context.exit()


def _names(command: click.Command) -> Iterator[str]:
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield "/".join(each.opts)


def _examples(command: click.Command) -> Iterator[str]:
    """Yield the lines with examples of an epilog."""
    for paragraph in (command.epilog or "").split("\n\n"):
        lines = paragraph.removeprefix("\b\n").splitlines()
        if lines and lines[0].strip() == _EXAMPLES:
            yield from lines[1:]
