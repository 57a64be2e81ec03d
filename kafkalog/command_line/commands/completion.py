"""`kafkalog completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kafkalog.errors import OptionError

_SHELLS = ("bash", "zsh", "fish")

_EPILOG = """\
\b
Examples:
  kafkalog completion bash >> ~/.bashrc
  kafkalog completion zsh >> ~/.zshrc
  kafkalog completion fish > ~/.config/fish/completions/kafkalog.fish
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes kafkalog's commands and options in a shell."""
    completer = get_completion_class(shell)
    if completer is None:
        raise OptionError("SHELL", shell, _SHELLS)
    root = context.find_root().command
    # Without click's check of the version of bash: the script may be for another machine.
    source = completer(root, {}, "kafkalog", "_KAFKALOG_COMPLETE")
    click.echo(source.source_template % source.source_vars())
