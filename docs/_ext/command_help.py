"""The directive ``command-help``: what ``l20fs COMMAND --help`` prints, for every command."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from l20fs.cli import COMMANDS, cli


class CommandHelp(SphinxDirective):
    """A section for each command with the help that it prints."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self.section(name, summary) for name, summary in COMMANDS.items()]

    def section(self, name: str, summary: str) -> nodes.section:
        """Return the section of one command."""
        title = f"l20fs {name}"
        section = nodes.section(ids=[f"l20fs-{name}"], names=[title])
        section += nodes.title("", title)
        section += nodes.paragraph("", summary)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        text = command.get_help(click.Context(command, info_name=title, terminal_width=80, max_content_width=80))
        section += nodes.literal_block(text, text, language="none")
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
