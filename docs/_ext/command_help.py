"""Directives ``command-help``, what ``l20fs COMMAND --help`` prints, and ``settings-table``, the keys of ``--config``."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from l20fs.cli import COMMANDS, cli
from l20fs.tables.settings import KEYS


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


class SettingsTable(SphinxDirective):
    """A table of all settings with their defaults."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        group = nodes.tgroup(cols=3)
        group += [nodes.colspec(colwidth=width) for width in (2, 1, 4)]
        heads, body = nodes.thead(), nodes.tbody()
        heads += self.row(*(nodes.Text(text) for text in ("key", "default", "meaning")))
        for key, each in KEYS.items():
            default = "" if each.default in (None, ()) else str(each.default)
            body += self.row(nodes.literal(key, key), nodes.Text(default), nodes.Text(each.metadata["help"]))
        group += [heads, body]
        table = nodes.table()
        table += group
        return [table]

    @staticmethod
    def row(*cells: nodes.Node) -> nodes.row:
        """Return a row of cells."""
        row = nodes.row()
        for cell in cells:
            entry, text = nodes.entry(), nodes.paragraph()
            text += cell
            entry += text
            row += entry
        return row


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("settings-table", SettingsTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
