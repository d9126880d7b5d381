"""``l20fs methods``: a list of all methods."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.output import show, show_json

if TYPE_CHECKING:
    from l20fs.estimators.base import BaseSelector


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def methods(as_json: bool) -> None:
    """List the methods of this package, with reference, kind, parameters and cost.

    \b
    Examples:
      l20fs methods
      l20fs methods --json
    """
    from l20fs import L20Selector
    from l20fs.methods import discover

    selectors: list[type[BaseSelector]] = [L20Selector, *discover().values()]
    rows = [describe(selector) for selector in selectors]
    if as_json:
        show_json(rows)
        return
    for row in rows:
        labels = "" if row["supervised"] else ", unsupervised"
        show(f"{row['name']}: {row['kind']}{labels}; {row['cost']}; another k: {row['another_k']}")
        for text in (row["reference"], "parameters: " + (", ".join(row["parameters"]) or "none")):
            for line in textwrap.wrap(text, width=100):
                show(f"    {line}")
    show("")
    show("N samples, d features, C classes, k selected features.")


def describe(selector: type[BaseSelector]) -> dict[str, Any]:
    """Return the entry of one method in the list."""
    from l20fs.estimators.scoring import SolvesForOneK

    return {
        "name": selector.__name__,
        **selector.about._asdict(),
        "another_k": "with sizes=" if issubclass(selector, SolvesForOneK) else "same fit",
        "parameters": [name for name in selector().get_params() if name != "n_features_to_select"],
    }
