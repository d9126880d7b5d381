"""Reading a fitted estimator changes nothing, from one thread or eight; no code reaches into objects of other classes."""

from __future__ import annotations

import ast
import copy
import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from samples import make_data
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import l20fs
from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.estimators.scoring import SolvesForOneK
from l20fs.methods import discover

SOURCE = Path(l20fs.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
N_THREADS = 8

# What every NamedTuple offers under a name that begins with an underscore.
PUBLIC_ANYWAY = {"_replace", "_asdict", "_fields", "_make"}


# No private member of a foreign object


def module_of(file):
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def private_members(node):
    """Return the private names that a class defines: methods, class attributes, and what its methods set on self."""
    found = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    for item in ast.walk(node):
        if (
            isinstance(item, ast.Attribute)
            and isinstance(item.ctx, ast.Store)
            and ast.unparse(item.value) in ("self", "cls")
        ):
            found.add(item.attr)
    for item in node.body:
        targets = item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
        found |= {ast.unparse(target) for target in targets}
    return {name for name in found if name.startswith("_")}


def members_by_class():
    found = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[module_of(file), node.name] = private_members(node)
    return found


MEMBERS = members_by_class()


def inherited_members(module, name):
    """Return the private names of a class and of its bases in this package."""
    bases = inspect.getmro(getattr(import_module(module), name))
    return set().union(*(MEMBERS.get((base.__module__, base.__name__), set()) for base in bases))


def foreign_accesses(tree, module):
    """Yield every access to a private member of an object that neither the module nor the class around it defines."""
    of_module = set().union(*(names for (home, _), names in MEMBERS.items() if home == module))

    def visit(node, allowed):
        if isinstance(node, ast.ClassDef):
            allowed = allowed | inherited_members(module, node.name)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = ast.unparse(node.value)
            is_own = owner in ("self", "cls", "super()") or node.attr in allowed
            if not is_own and node.attr not in PUBLIC_ANYWAY:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, allowed)

    yield from visit(tree, of_module)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_private_member_of_a_foreign_object(file):
    assert list(foreign_accesses(ast.parse(file.read_text()), module_of(file))) == []


@pytest.mark.parametrize(
    "code", ["selector._fit(X, y)", "self.model._learn", "class A:\n    def f(self, b): return b._other"]
)
def test_a_foreign_access_is_found(code, monkeypatch):
    monkeypatch.setattr(f"{__name__}.inherited_members", lambda module, name: set())
    assert len(list(foreign_accesses(ast.parse(code), "l20fs.text"))) == 1


# Reading changes nothing


def snapshot(value):
    """Copy a value so deep that no change of the original reaches the copy."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: snapshot(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [snapshot(part) for part in value]
    if is_dataclass(value) and not isinstance(value, BaseEstimator | type):
        return {field.name: snapshot(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, BaseEstimator):
        return {"class": type(value).__name__, **snapshot(vars(value))}
    return copy.deepcopy(value) if sp.issparse(value) or isinstance(value, pd.DataFrame) else value


def is_same(one, other):
    """Compare two snapshots to the last bit."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if one.dtype == object:
            return one.shape == other.shape and all(map(is_same, one.flat, other.flat))
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, pd.DataFrame):
        return one.equals(other)
    if sp.issparse(one):
        return is_same(one.toarray(), other.toarray())
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float):
        return one == other or (np.isnan(one) and np.isnan(other))
    if type(one).__module__.startswith("l20fs") or callable(one):  # an object without fields that are compared
        return type(one) is type(other)
    # Objects of other packages need not have an equality, but they have a text.
    return type(one) is type(other) and bool(one == other or repr(one) == repr(other))


def differing(one, other):
    """Return the names under which two snapshots differ."""
    return [name for name in {**one, **other} if name not in one or name not in other or not is_same(one[name], other[name])]


SIZES = (3, 1, 2)
# These are there to change the estimator.
CHANGING = ("fit", "fit_transform", "set_params", "set_output")


def answers_of(estimator, X, y, small):
    """Read every public attribute and call every public method; return all that came out."""
    found = {}
    for name in sorted(dir(estimator)):
        if name.startswith("_") or name in CHANGING or name.endswith("_request"):
            continue
        try:
            value = getattr(estimator, name)
        except AttributeError:  # of methods that this configuration does not have
            continue
        found[name] = snapshot(value)
        if not inspect.ismethod(value):
            continue
        required = [
            parameter.name
            for parameter in inspect.signature(value).parameters.values()
            if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        given = {"X": small if name == "inverse_transform" else X, "y": y}
        if name == "near_optimal":
            found[name] = snapshot(value(eps=0.01, time_limit=None, **given)) if estimator.loss == "squared" else None
            continue
        if required == ["ends"]:
            found[name] = [snapshot(rule) for rule in value(np.sort(SIZES))]
        elif required == ["k"]:
            found[name] = [snapshot(value(k)) for k in SIZES]
        elif set(required) <= set(given):
            found[name] = snapshot(value(*(given[parameter] for parameter in required)))
        else:
            raise AssertionError(f"{type(estimator).__name__}.{name}{tuple(required)} is not tried here")
    return found


ESTIMATORS = {
    "L20Selector": L20Selector(3, max_features=5),
    "L20Selector, certify": L20Selector(3, certify=True, ridge=1.0),
    "L20Selector, alpha": L20Selector(None, alpha=0.5, max_features=5, include=[0], feature_groups=[[1, 2]], solver="ahiht"),
    "L20Selector, l21": L20Selector(3, loss="l21", solver="swap"),
    "L20Classifier": L20Classifier(3, max_features=5),
    "L20Regressor": L20Regressor(3, max_features=5),
    "L20SelectorCV": L20SelectorCV("1se", max_features=5, cv=3),
    "L20SelectorCV, estimator": L20SelectorCV(3, max_features=5, cv=3, estimator=LogisticRegression()),
    "L20SelectorCV, regressor": L20SelectorCV("best", max_features=5, cv=3, estimator="regressor"),
    "StabilitySelector": StabilitySelector(L20Selector(3, max_features=5), n_resamples=6, random_state=0),
} | {name: method(3) for name, method in discover().items()}


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request):
    X, y = make_data()
    estimator = copy.deepcopy(ESTIMATORS[request.param])
    if isinstance(estimator, SolvesForOneK):
        estimator.set_params(sizes=SIZES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y), X, y, X[:, : int(estimator.support_.sum())]


@pytest.mark.filterwarnings("ignore:could not convert|Found unknown")
def test_reading_leaves_the_estimator_as_it_was(fitted):
    estimator, X, y, small = fitted
    before, keys = snapshot(vars(estimator)), list(vars(estimator))
    first = answers_of(estimator, X, y, small)
    assert list(vars(estimator)) == keys
    assert differing(snapshot(vars(estimator)), before) == []
    assert differing(answers_of(estimator, X, y, small), first) == []


def test_eight_threads_read_the_same(fitted):
    estimator, X, y, small = fitted
    expected = answers_of(copy.deepcopy(estimator), X, y, small)
    fresh = copy.deepcopy(estimator)  # nothing of it was read and kept before
    barrier = Barrier(N_THREADS)

    def read(_):
        barrier.wait()
        return answers_of(fresh, X, y, small)

    with ThreadPoolExecutor(N_THREADS) as pool:
        answers = list(pool.map(read, range(N_THREADS)))
    assert [differing(found, expected) for found in answers] == [[]] * N_THREADS


def test_sizes_are_asked_for_and_not_set(fitted):
    estimator, *_ = fitted
    size = estimator.n_features_to_select
    for k in SIZES:
        other = estimator.with_size(k)
        assert np.array_equal(estimator.support_for(k), other.support_)
        assert np.array_equal(np.sort(estimator.order_for(k)), np.flatnonzero(other.support_))
        if hasattr(estimator, "coef_for"):
            assert np.array_equal(estimator.coef_for(k), other.coef_)
        if hasattr(estimator, "model_for"):
            assert np.array_equal(estimator.model_for(k).rows, estimator.order_for(k))
    assert estimator.n_features_to_select == size
    assert np.array_equal(estimator.support_, estimator.support_for(size))
