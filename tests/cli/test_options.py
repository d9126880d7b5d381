"""The records of options and the options that click declares are the same."""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from l20fs.cli.options import DataOptions, SelectOptions
from l20fs.cli.path import PathOptions, path
from l20fs.cli.select import select


@pytest.mark.parametrize(("command", "record"), [(select, SelectOptions), (path, PathOptions)])
def test_records_and_commands_have_the_same_options_and_defaults(command, record):
    given = command.make_context(command.name, ["table.csv"]).params
    del given["data"]
    assert set(given) == {field.name for field in fields(record)}
    assert record(**given) == record()


def test_options_that_only_methods_of_l20selector_take_are_filled_in_or_refused():
    completed = SelectOptions(scale="none").completed()
    assert (completed.scale, completed.ranking, completed.class_weight) == ("none", "entry", "balanced")
    assert SelectOptions(method="RFS").completed() == SelectOptions(method="RFS")
    with pytest.raises(click.UsageError, match="--class-weight does not go with --method RFS"):
        SelectOptions(method="RFS", class_weight="none").completed()


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        DataOptions().target = "type"
