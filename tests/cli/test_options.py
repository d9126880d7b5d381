"""The records of options and the options that click declares are the same."""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from l20fs.cli import run
from l20fs.cli.options import DataOptions, SelectOptions
from l20fs.cli.select import select


def test_the_record_and_the_command_have_the_same_options_and_defaults():
    given = select.make_context(select.name, ["table.csv"]).params
    del given["data"]
    assert set(given) == {field.name for field in fields(SelectOptions)}
    assert SelectOptions(**given) == SelectOptions()


def test_options_that_only_methods_of_l20selector_take_are_filled_in_or_refused():
    completed = SelectOptions(scale="none").completed()
    assert (completed.scale, completed.ranking, completed.class_weight) == ("none", "entry", "balanced")
    assert SelectOptions(method="RFS").completed() == SelectOptions(method="RFS")
    with pytest.raises(click.UsageError, match="--class-weight does not go with --method RFS"):
        SelectOptions(method="RFS", class_weight="none").completed()


def test_panels_in_which_a_feature_may_fail():
    assert SelectOptions(method="swap", robust_to=1).completed().robust_to == 1
    assert SelectOptions(method="sbr", robust_to=0).completed().robust_to == 0
    for method in ("sbr", "ahiht", "hiht"):
        with pytest.raises(click.UsageError, match=f"--robust-to 1 does not go with --method {method}. Use"):
            SelectOptions(method=method, robust_to=1).completed()
    with pytest.raises(click.UsageError, match="--robust-to does not go with --method RFS"):
        SelectOptions(method="RFS", robust_to=1).completed()


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        DataOptions().target = "type"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select", "srbct", "--stability", "1000000000"], "'--stability': 1000000000 is more than 100000: "),
        (["select", "srbct", "--stability", "1e21"], "'--stability': '1e21' is not a whole number."),
        (["select", "srbct", "--stability", "1"], "'--stability': 1 is not in the range 2<=x<=100000."),
        (["select", "srbct", "-k", "9" * 4000], f"'-k': {'9' * 20}… is more than 100000000: "),
        (["select", "srbct", "-k", "9" * 5000], f"'-k': '{'9' * 20}…' is not a whole number."),
        (
            ["select", "srbct", "--auto", "best", "--max-features", "1" + "0" * 12],
            "'--max-features': 1000000000000 is more than ",
        ),
        (["select", "srbct", "--n-jobs", "100000"], "'--n-jobs': 100000 is more than 1024: "),
        (["select", "srbct", "--seed", "4294967296"], "'--seed': 4294967296 is more than 4294967295: seeds have 32 bits."),
        (["select", "srbct", "--robust-to", "2"], "'--robust-to': 2 is not in the range 0<=x<=1."),
        (["select", "srbct", "--skip-rows", "1" + "0" * 12], "'--skip-rows': 1000000000000 is more than 1000000: "),
        (["compare", "srbct", "-o", "out", "--splits", "1" + "0" * 12], "'--splits': 1000000000000 is more than 10000: "),
        (["compare", "srbct", "-o", "out", "--sizes", "999999999"], "--sizes: '999999999' is not a number of features."),
        (["reproduce", "all", "-o", "out", "--n-jobs", "99999"], "'--n-jobs': 99999 is more than 1024: "),
    ],
)
def test_numbers_without_sense_are_refused_with_a_reason(capsys, arguments, message):
    assert run(arguments) == 2
    assert message in capsys.readouterr().err
