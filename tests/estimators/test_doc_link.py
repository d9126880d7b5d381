"""The HTML representation links to the page of the class on the documentation site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.utils import estimator_html_repr

import l20fs
from l20fs import L20Selector
from l20fs.estimators.base import BaseSelector
from l20fs.methods import discover

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ESTIMATORS = [
    thing for name in l20fs.__all__ if isinstance(thing := getattr(l20fs, name), type) and issubclass(thing, BaseSelector)
]


def pages():
    """Return the public names that docs/api.md lists, each of which has a page."""
    for module, names in re.findall(r"currentmodule:: (\S+)\n\n.*?:nosignatures:\n\n(.*?)```", API, flags=re.DOTALL):
        yield from (f"{module}.{name}" for name in names.split())


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *discover().values()], ids=lambda cls: cls.__name__)
def test_the_link_leads_to_the_page_of_the_class(estimator):
    link = estimator()._get_doc_link()
    (name,) = re.fullmatch(r"https://l20fs\.readthedocs\.io/en/latest/generated/(.*)\.html", link).groups()
    assert name in set(pages())
    assert name.endswith(f".{estimator.__name__}")
    assert link in estimator_html_repr(estimator())


def test_a_class_of_the_user_has_no_link():
    class Own(L20Selector):
        pass

    assert Own()._get_doc_link() == ""
