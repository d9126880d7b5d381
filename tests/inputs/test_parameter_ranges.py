"""Every numeric parameter, at the ends of its range and beyond: a result or one line that says what is valid."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from l20fs import AHIHT, Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.methods import discover
from l20fs.solvers import SOLVERS

random = np.random.default_rng(0)
X = random.standard_normal((16, 5))
LABELS = np.arange(16) % 2
X[:, 0] += LABELS

#: Ends of the range, values beyond it, and things that are no numbers.
VALUES = [0, -1, 5e-324, 1e-100, 1e-16, 1 + 1e-16, 1e16, 1e100, 1.7e308, np.inf, np.nan]
VALUES += [10**12, 10**30, True, "1", None, np.int8(5), np.float32(0.5)]

#: What keeps a fit short whatever the other parameters are.
SHORT = {"max_iter": 10, "n_resamples": 2, "cv": 2, "n_alphas": 3, "rate": 0.3, "selector": L20Selector(3)}
ESTIMATORS = [L20Selector, L20Classifier, L20Regressor, L20SelectorCV, StabilitySelector, *discover().values()]


def numeric_parameters(kind):
    """Return the names of the parameters whose type or default is a number."""
    for name, parameter in inspect.signature(kind).parameters.items():
        has_number = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
        is_typed = "float" in str(parameter.annotation) or name in ("max_features_to_select", "cv", "calibration")
        if (has_number or is_typed) and name not in ("verbose", "n_jobs"):
            yield name


def short(kind, **params):
    """Return an estimator whose fits are short, with these parameters."""
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in SHORT.items() if name in known} | params)


CASES = [(kind, name) for kind in ESTIMATORS for name in numeric_parameters(kind)]
OF_SOLVERS = [(solver, name) for solver in SOLVERS.values() for name in numeric_parameters(solver)]


def fit_or_refuse(estimator):
    """Fit, and check that all numbers are numbers; a refusal is one line."""
    refusal = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X, LABELS).get_support()
        except (ValueError, TypeError) as error:
            refusal = error
    if refusal is not None:
        assert not isinstance(refusal, np.linalg.LinAlgError)
        assert len(str(refusal).splitlines()) == 1
        return
    for name in ("scores_", "coef_", "objective_"):
        assert not np.isnan(np.asarray(getattr(estimator, name, 0.0), dtype=float)).any(), name


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_every_parameter_of_an_estimator(kind, name):
    for value in VALUES:
        fit_or_refuse(short(kind, **{name: value}))


@pytest.mark.parametrize(("kind", "name"), OF_SOLVERS, ids=lambda case: getattr(case, "__name__", case))
def test_every_option_of_a_solver(kind, name):
    for value in VALUES:
        solver = short(kind, **{name: value})
        fit_or_refuse(L20Selector(3, solver=solver))


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_with_parameters_of_the_selector(solver):
    for value in (1e-100, 1e-16, 1e16, 1e100):
        for params in (
            {"ridge": value},
            {"constraints": Constraints(costs=[value, 1 / value, 1.0, 1.0, 0.0])},
        ):
            fit_or_refuse(L20Selector(3, solver=solver, **params))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"solver": AHIHT(alpha_min=5e-324)},
            r"alpha_min=5e-324 is not valid\. Use a number above 0, from 1e-100 to 1e\+100",
        ),
        ({"ridge": 1e300}, r"ridge=1e\+300 is not valid\. Use 'auto', or a number at least 0, from 1e-100 to 1e\+100"),
        (
            {"max_features_to_select": 10**12},
            r"max_features_to_select=1000000000000 is not valid\. .* at least 1 and at most 1e\+09",
        ),
        (
            {"constraints": Constraints(costs=[1e-300, 1, 1, 1, 1])},
            r"costs=1e-300 .* others lie from 1e-100 to 1e\+100",
        ),
        ({"solver": SOLVERS["hiht"](line_search_factor=1.0000001)}, r"line_search_factor=1\.0000001 .* at least 1\.01"),
        ({"solver": SOLVERS["ahiht"](rate=0.9999999)}, r"rate=0\.9999999 .* from 1e-100 to 0\.999"),
        (
            {"solver": SOLVERS["ahiht"](lipschitz_start=1e80)},
            r"lipschitz_start=1e\+80 is not valid for this X\. Use a number",
        ),
    ],
)
def test_what_would_never_end_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        L20Selector(**{"n_features_to_select": 3} | params).fit(X, LABELS)


@pytest.mark.parametrize("solver", ["hiht", "ahiht"])
def test_a_start_below_every_lambda_has_one_stage(solver):
    selector = L20Selector(3, solver=SOLVERS[solver](alpha_start=1e-90)).fit(X, LABELS)
    assert len(selector.path_.alphas) == 1
