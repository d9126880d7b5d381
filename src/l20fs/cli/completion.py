"""``l20fs completion``: a script with which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from l20fs.cli.output import show_text


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets the SHELL complete commands and options.

    \b
    Examples:
      l20fs completion bash >> ~/.bashrc
      l20fs completion zsh >> ~/.zshrc
      l20fs completion fish > ~/.config/fish/completions/l20fs.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows all three"
    script = kind(context.find_root().command, {}, "l20fs", "_L20FS_COMPLETE")
    show_text(script.source_template % script.source_vars() + "\n")
