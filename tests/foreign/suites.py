"""The suites: whose tests, where they are in the environment, and which of their names are ours."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from foreign import adapters
from foreign.data import write_genotypes

#: Folder of the unpacked sdists, which the set-up of the environment downloads.
SDISTS = Path(sys.prefix) / "sdists"


class Suite(NamedTuple):
    """Tests of another package.

    ``file`` is relative to the folder of the installed ``package``, or of its unpacked sdist where ``is_unpacked``.
    ``replaced`` maps ``module:name`` to what stands in its place; ``only`` chooses tests by pytest's ``-k``; ``prepare``
    writes files that the tests read into the folder that they run in.
    """

    package: str
    file: str
    replaced: Mapping[str, Any]
    only: str = ""
    is_unpacked: bool = False
    prepare: Callable[[Path], object] | None = None

    def path(self) -> Path:
        """Return the file of the tests."""
        if self.is_unpacked:
            return next(SDISTS.glob(f"{self.package}-*/")) / self.file
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"{self.package} is not installed here. Use make test-foreign.")
        return Path(spec.origin).parent / self.file

    def replace(self) -> None:
        """Put our names in the place of theirs, before the tests import them."""
        for place, ours in self.replaced.items():
            module, name = place.split(":")
            setattr(importlib.import_module(module), name, ours)


def of_scikit_learn(file: str, *names: str, module: str = "sklearn.feature_selection") -> Suite:
    """Return a suite of scikit-learn in which selectors of the same names are ours."""
    replaced = {f"{module}:{name}": getattr(adapters, name) for name in names}
    return Suite("sklearn", f"feature_selection/tests/{file}.py", replaced)


def of_mlxtend(part: str) -> Suite:
    """Return a suite of mlxtend's sequential selector."""
    file = f"feature_selection/tests/test_sequential_feature_selector_{part}.py"
    return Suite("mlxtend", file, {"mlxtend.feature_selection:SequentialFeatureSelector": adapters.FloatingSelector})


#: abess, whose multi-task tests would be next, publishes none on PyPI: neither its sdists nor its wheels have any.
SUITES = {
    "scikit-learn base": of_scikit_learn("test_base", "SelectorMixin", module="sklearn.feature_selection._base"),
    "scikit-learn sequential": of_scikit_learn("test_sequential", "SequentialFeatureSelector"),
    "scikit-learn from_model": of_scikit_learn("test_from_model", "SelectFromModel"),
    "scikit-learn rfe": of_scikit_learn("test_rfe", "RFE", "RFECV"),
    "fastcan": Suite("fastcan", "tests/test_fastcan.py", {"fastcan:FastCan": adapters.FastCan}),
    "skrebate ReliefF": Suite(
        "skrebate",
        "tests/test_skrebate.py",
        {"skrebate:ReliefF": adapters.ReliefF},
        only="ReliefF",
        is_unpacked=True,
        prepare=write_genotypes,
    ),
    "mlxtend fixed features": of_mlxtend("fixed_features"),
    "mlxtend feature groups": of_mlxtend("feature_groups"),
}
