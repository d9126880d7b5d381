"""Checks of docstrings: tools/check_docstrings.py accepts complete docstrings and finds faults."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

pytest.importorskip("numpydoc")
FILE = Path(__file__).parents[1] / "tools" / "check_docstrings.py"
SPEC = importlib.util.spec_from_file_location("check_docstrings", FILE)
check_docstrings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_docstrings)


def codes(obj: object) -> set[str]:
    checks = check_docstrings.enabled_checks()
    return {fault.code for fault in check_docstrings.check_object("object", obj, checks)}


def complete(x: float) -> float:
    """Return x.

    Parameters
    ----------
    x : float
        A number.

    Returns
    -------
    float
        The same number.

    Examples
    --------
    >>> complete(1.0)
    1.0
    """
    return x


def incomplete(x: float, y: float) -> float:
    """returns something

    Parameters
    ----------
    x : float
    """
    return x + y


@dataclass
class Record:
    """Record with a field that is not documented.

    Attributes
    ----------
    first : int
        A number.

    Examples
    --------
    >>> Record(1, 2).first
    1
    """

    first: int
    second: int


class Mean(BaseEstimator):
    """Estimator without Attributes.

    Examples
    --------
    >>> Mean().fit([[1.0]]).mean_
    1.0
    """

    def fit(self, X, y=None):
        self.mean_ = float(X[0][0])
        return self


def test_a_complete_docstring_has_no_fault():
    assert codes(complete) == set()


def test_faults_of_a_function_are_found():
    assert codes(incomplete) == {"SS02", "SS03", "SS05", "PR01", "PR07", "RT01", "EX01"}


def test_fields_and_fitted_attributes_must_be_documented():
    assert codes(Record) == {"fields"}
    assert codes(Mean) == {"attributes"}


def test_a_published_method_needs_references():
    from l20fs.methods import FisherScore

    class Copy(FisherScore):
        # Python 3.13 takes the indentation away.
        __doc__ = re.sub(r"References\n( *)-+\n", r"Notes\n\1-----\n", FisherScore.__doc__)
        about = FisherScore.about

    assert codes(FisherScore) == set()
    assert "references" in codes(Copy)


def test_docstrings_do_not_open_with_a_question_word(tmp_path, monkeypatch):
    file = tmp_path / "module.py"
    file.write_text('"""Cache of columns."""\n\n\ndef f():\n    """What f returns."""\n')
    monkeypatch.setattr(check_docstrings, "ROOT", tmp_path)
    assert [fault.name for fault in check_docstrings.check_openings(file)] == ["module.py:5"]


@pytest.mark.parametrize("module", ["l20fs.methods", "l20fs.plots", "l20fs.data", "l20fs.data.readers", "l20fs.anndata"])
def test_every_room_has_public_objects(module):
    names = [name for name, _ in check_docstrings.public_objects()]
    assert any(name.startswith(f"{module}.") for name in names)
