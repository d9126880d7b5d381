"""Validate the docstrings of the public API: numpydoc's checks (pyproject.toml names those left out), and a few of our own.

Our own checks: the fields of a record and the fitted attributes of an estimator are documented; every published method has
References; no docstring of the package opens with a question word. ``make lint`` runs this file.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import tomllib
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from numpydoc.docscrape import NumpyDocString, get_doc_object
from numpydoc.validate import ERROR_MSGS, validate
from sklearn.base import BaseEstimator

from l20fs.data import make_planted

ROOT = Path(__file__).resolve().parents[1]

#: Public names by module; None: those of its ``__all__``.
PUBLIC: dict[str, tuple[str, ...] | None] = {
    "l20fs": None,
    "l20fs.inspection": None,
    "l20fs.methods": None,
    "l20fs.plots": None,
    "l20fs.data": None,
    "l20fs.tables": None,
    "l20fs.anndata": None,
    "l20fs.deployment": ("register_converters", "trusted_types"),
    "l20fs.bounds.certificate": ("Certificate", "certify_penalty", "certify_size", "lower_bounds"),
    "l20fs.bounds.branch_and_bound": ("Optimum", "solve_exactly"),
}

#: Attributes that every scikit-learn estimator has and scikit-learn documents.
OF_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_"}

#: No docstring opens with one of these: a docstring states, it does not ask.
QUESTION_WORDS = {"How", "What", "When", "Where", "Which", "Who", "Why"}


class Fault(NamedTuple):
    """One violated rule of one object."""

    name: str
    code: str
    message: str


def main() -> int:
    """Print all faults and return the exit status."""
    checks = enabled_checks()
    faults = [fault for name, obj in public_objects() for fault in check_object(name, obj, checks)]
    faults += [fault for file in sorted((ROOT / "src").rglob("*.py")) for fault in check_openings(file)]
    for fault in faults:
        print(f"{fault.name}: {fault.code} {fault.message}")
    print(f"{len(faults)} faults in docstrings" if faults else "All docstrings of the public API are complete.")
    return 1 if faults else 0


def enabled_checks() -> set[str]:
    """Return numpydoc's check codes less those that pyproject.toml leaves out."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]["checks"]
    return set(ERROR_MSGS) - set(listed) if "all" in listed else set(listed)


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield the name of every public class and function with the object, and each class followed by its public members."""
    seen: set[str] = set()
    for module_name, names in PUBLIC.items():
        module = import_module(module_name)
        for name in module.__all__ if names is None else names:
            obj = getattr(module, name)
            yield f"{module_name}.{name}", obj
            for member_name, member in public_members(obj):
                if member_name not in seen:
                    seen.add(member_name)
                    yield member_name, member


def public_members(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class has from this package, named by the class that defines them."""
    if not inspect.isclass(obj):
        return
    for owner in inspect.getmro(obj):
        if owner.__module__.partition(".")[0] != "l20fs":
            continue
        for name, member in vars(owner).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_member = inspect.isfunction(function) or isinstance(function, property)
            is_inherited = not function.__doc__ and inspect.getdoc(function) is not None  # documented by the base class
            if is_member and not is_inherited and not name.startswith("_"):
                yield f"{owner.__module__}.{owner.__qualname__}.{name}", function


def check_object(name: str, obj: Any, checks: set[str]) -> Iterator[Fault]:
    """Yield the faults of one public class, function, method or property."""
    skipped = skipped_checks(obj)
    for code, message in validate(get_doc_object(obj))["errors"]:
        if code in checks and code not in skipped:
            yield Fault(name, code, message)
    if not inspect.isclass(obj):
        return
    documented = {entry for base in documented_bases(obj) for entry in documented_names(base)} | documented_names(obj)
    if missing := sorted(fields(obj) - documented):
        yield Fault(name, "fields", f"{', '.join(missing)} not documented")
    if issubclass(obj, BaseEstimator) and hasattr(obj, "fit"):
        if missing := sorted(fitted_attributes(obj) - documented):
            yield Fault(name, "attributes", f"{', '.join(missing)} not documented in Attributes")
        if is_published(obj) and not NumpyDocString(inspect.getdoc(obj) or ".")["References"]:
            yield Fault(name, "references", "no References section with the publication")


def skipped_checks(obj: Any) -> set[str]:
    """Return the codes that do not apply to an object."""
    if inspect.isclass(obj):
        if issubclass(obj, BaseException):
            return {"EX01"}  # shown by what raises it
        # The fields of a record may be documented as Attributes, see fields(); an inherited constructor is documented once.
        is_inherited = "__init__" not in vars(obj) and bool(documented_bases(obj))
        return {"PR01"} if is_record(obj) or is_inherited else set()
    # A method is shown by the Examples of its class; a property has neither parameters nor Returns.
    skipped = {"EX01"} if isinstance(obj, property) or "." in obj.__qualname__ else set()
    # What a walk yields is for the driver; the Returns section says what it ends with.
    return skipped | {"YD01"} if inspect.isgeneratorfunction(obj) else skipped


def documented_bases(cls: type) -> list[type]:
    """Return the base classes of a class that belong to the public API themselves."""
    return [base for base in inspect.getmro(cls)[1:] if base.__module__ != "builtins" and is_public(base)]


def is_public(obj: Any) -> bool:
    """Return whether an object is one of the public names."""
    return any(getattr(import_module(module), obj.__name__, None) is obj for module in PUBLIC)


def documented_names(cls: type) -> set[str]:
    """Return the names that the sections Parameters and Attributes of a class list."""
    sections = NumpyDocString(inspect.getdoc(cls) or ".")
    return {name for section in ("Parameters", "Attributes") for item in sections[section] for name in item.name.split(", ")}


def is_record(cls: type) -> bool:
    """Return whether a class is a dataclass or a named tuple."""
    return dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")


def fields(cls: type) -> set[str]:
    """Return the public fields of a record."""
    if not is_record(cls):
        return set()
    names = getattr(cls, "_fields", None) or [field.name for field in dataclasses.fields(cls)]
    return {name for name in names if not name.startswith("_")}


def fitted_attributes(cls: type[BaseEstimator]) -> set[str]:
    """Return the public attributes that an estimator has after a fit and scikit-learn does not document."""
    X, y, _ = make_planted(n_samples=60, n_features=8, n_informative=2, n_classes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = vars(cls().fit(X, y))
    properties = {name for name, member in inspect.getmembers(cls) if isinstance(member, property)}
    names = {name for name in {*fitted, *properties} if name.endswith("_") and not name.startswith("_")}
    return names - OF_SCIKIT_LEARN


def is_published(cls: type) -> bool:
    """Return whether a class itself names a publication."""
    about = vars(cls).get("about")
    return about is not None and about.kind != "none"


def check_openings(file: Path) -> Iterator[Fault]:
    """Yield the docstrings of a file that open with a question word."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0].strip(",.:;") in QUESTION_WORDS:
                place = f"{file.relative_to(ROOT)}:{node.body[0].lineno}"
                yield Fault(place, "opening", f"opens with {words[0]!r}; state the thing, or what the function does")


if __name__ == "__main__":
    sys.exit(main())
