"""Plans of experiments in TOML: methods, parameters, data sets and splits."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn, get_args

from l20fs import L20Selector, paper_settings
from l20fs.design import Scale
from l20fs.estimators.base import BaseSelector
from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.experiments.protocol import CLASSIFIERS
from l20fs.methods import discover
from l20fs.solvers import SOLVERS, make_solver
from l20fs.storage.regular_files import MOST_BYTES, LargeFileError, NotAFileError, read_regular
from l20fs.text import closest_hint

#: Size that stands for the number of features with non-zero weights at the lambda of the path.
NONZERO = 0

#: Keys of a plan, and of a method.
KEYS = {"title", "datasets", "sizes", "n_splits", "seed", "classifiers", "inner_folds", "scale", "methods"}
METHOD_KEYS = {"label", "method", "paper_solver", "paper_reading", "params", "grid", "sizes"}

#: Scaling of the features of a cell for all methods, by its training samples (:mod:`l20fs.design.column_scale`).
SCALES = get_args(Scale)

#: Parameters that a plan cannot set, because the runner sets them.
RESERVED = ("n_features_to_select", "max_features", "sizes", "callback")


class PlanError(ValueError):
    """Invalid plan; the message names the line."""


@dataclass(frozen=True)
class Variant:
    """Method with one choice of its parameters; ``choice`` is the part from a grid.

    The options of a solver are among the parameters, by their own names.
    """

    label: str
    method: str
    params: Mapping[str, Any]
    choice: Mapping[str, Any]
    sizes: tuple[int, ...] | None = None

    def selector(self) -> BaseSelector:
        """Return the unfitted selector."""
        kind = selector_class(self.method)
        own = kind().get_params()
        params = {name: value for name, value in self.params.items() if name in own}
        options = {name: value for name, value in self.params.items() if name not in own}
        if options:
            params["solver"] = make_solver(params.get("solver", own.get("solver"))).set_params(**options)
        return kind(**params)


@dataclass(frozen=True)
class Plan:
    """Plan of an experiment.

    ``inner_folds`` is the number of folds of the training part of every trial, on which parameters and sizes are chosen
    without its test samples; 0 for the trials only. ``scale`` is one scaling of the features for all methods
    (:data:`SCALES`); None: each method gets them as they are and scales them by its own parameters. ``scoring`` names the
    metric by which all is chosen and reported. ``lines`` has the lines of the data
    sets, of the sizes and of each method, for errors that are found later.
    """

    title: str
    datasets: tuple[str, ...]
    sizes: tuple[int, ...]
    variants: tuple[Variant, ...]
    classifiers: tuple[str, ...] = tuple(CLASSIFIERS)
    n_splits: int = 10
    inner_folds: int = 0
    seed: int = 0
    scale: Scale | None = None
    scoring: str = "accuracy"
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the methods, in the order of the plan."""
        return tuple(dict.fromkeys(variant.label for variant in self.variants))

    @property
    def metric(self) -> Metric:
        """The metric by which all is chosen and reported."""
        return METRICS[self.scoring]

    def refuse_small(self, dataset: str, n_features: int) -> None:
        """Raise an error for sizes above the number of features of a data set."""
        for variant in self.variants:
            largest = max(variant.sizes or self.sizes)
            if largest > n_features and variant.method != "Baseline":
                line = self.lines.get("sizes" if variant.sizes is None else variant.label, 1)
                raise PlanError(
                    f"line {line}: sizes go up to {largest}, but {dataset} has {n_features} features. Use smaller sizes, or "
                    "leave the set out."
                )


def load_plan(source: str | Path) -> Plan:
    """Read one of the package's plans by name, or a TOML file.

    Examples
    --------
    >>> plan = load_plan("accuracy")
    >>> plan.sizes[:3], plan.n_splits
    ((20, 40, 60), 10)
    """
    if isinstance(source, Path):
        try:
            return parse_plan(read_regular(source, MOST_BYTES).decode())
        except (NotAFileError, LargeFileError, UnicodeDecodeError) as error:
            raise PlanError(f"{source.name}: no plan ({error}). Name a TOML file.") from error
    return parse_plan(files("l20fs.experiments").joinpath("plans", f"{source}.toml").read_text(encoding="utf-8"))


def parse_plan(text: str) -> Plan:
    """Parse the text of a plan, or raise an error that names the line.

    Examples
    --------
    >>> parse_plan('datasets = ["srbct"]\\nsizes = [5]\\n[[methods]]\\nmethod = "Relief"')
    Traceback (most recent call last):
        ...
    l20fs.experiments.plan.PlanError: line 4: the method 'Relief' is unknown. The closest name is 'ReliefF'.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"The plan is not valid TOML: {error}.") from error
    where = Lines(text)
    where.refuse_unknown_keys(content, KEYS)
    for key in ("datasets", "sizes", "methods"):
        if not content.get(key):
            where.refuse(f"{key} is missing or empty. Give one or more.", key)
    classifiers = tuple(content.get("classifiers", CLASSIFIERS))
    for name in classifiers:
        if name not in CLASSIFIERS:
            where.refuse(f"the classifier {name!r} is unknown. Use {' or '.join(CLASSIFIERS)}.", "classifiers")
    scale = content.get("scale")
    if scale is not None and scale not in SCALES:
        where.refuse(f"scale={scale!r}. Use {' or '.join(map(repr, SCALES))}.", "scale")
    sizes = _sizes(content["sizes"], where, "sizes")
    methods = [_Method(entry, number, where, sizes) for number, entry in enumerate(content["methods"])]
    labels = [method.label for method in methods]
    for number, label in enumerate(labels):
        if label in labels[:number]:
            where.refuse(f"the label {label!r} is used twice. Give each method its own.", "methods", number, "label")
    return Plan(
        title=str(content.get("title", "")),
        datasets=tuple(content["datasets"]),
        sizes=sizes,
        variants=tuple(variant for method in methods for variant in method.variants()),
        classifiers=classifiers,
        n_splits=_count(content, "n_splits", 10, where, least=1),
        inner_folds=_count(content, "inner_folds", 0, where),
        seed=_count(content, "seed", 0, where),
        scale=scale,
        lines={
            "sizes": where.of("sizes"),
            "datasets": where.of("datasets"),
            **{method.label: where.of("methods", number) for number, method in enumerate(methods)},
        },
    )


def selector_class(name: str) -> type[BaseSelector]:
    """Return the class of a method by its name."""
    return L20Selector if name == "L20Selector" else discover()[name]


class _Method:
    """Entry ``[[methods]]`` of a plan."""

    def __init__(self, entry: dict[str, Any], number: int, where: Lines, sizes: tuple[int, ...]) -> None:
        self.number, self.where = number, where
        where.refuse_unknown_keys(entry, METHOD_KEYS, "methods", number)
        self.name = str(entry.get("method", "L20Selector"))
        known = ["L20Selector", *discover()]
        if self.name not in known:
            self.refuse(f"the method {self.name!r} is unknown. {closest_hint(self.name, known)}", "method")
        self.label = str(entry.get("label", self.name))
        solver = entry.get("paper_solver")
        if solver is not None and (self.name != "L20Selector" or solver not in ("ahiht", "hiht")):
            self.refuse(f"paper_solver={solver!r}. Use 'ahiht' or 'hiht' of L20Selector.", "paper_solver")
        reading = entry.get("paper_reading", "code")
        if reading not in ("code", "printed") or (solver is None and "paper_reading" in entry):
            self.refuse(f"paper_reading={reading!r}. Use 'code' or 'printed' beside a paper_solver.", "paper_reading")
        settings = {} if solver is None else _flat(paper_settings(solver, reading=reading))
        self.params = settings | dict(entry.get("params", {}))
        self.grid = dict(entry.get("grid", {}))
        self.sizes = _sizes(entry["sizes"], where, "methods", number, "sizes") if "sizes" in entry else None
        self._refuse_bad_parameters()
        has_alpha = self.name == "L20Selector" and "alpha" in {**self.params, **self.grid}
        if (self.sizes or sizes) == (NONZERO,) and not has_alpha:
            self.refuse(f"{self.label} has no alpha at which rows are non-zero. Give sizes in numbers.", "sizes")

    def refuse(self, message: str, key: str) -> NoReturn:
        self.where.refuse(message, "methods", self.number, key)

    def _refuse_bad_parameters(self) -> None:
        known = [name for name in selector_class(self.name)().get_params() if name not in RESERVED]
        for solver in self.grid.get("solver", [self.params.get("solver")]):
            known += SOLVERS[solver]().get_params() if solver in SOLVERS else []
        for source, names in (("params", self.params), ("grid", self.grid)):
            for name in names:
                if name not in known:
                    self.refuse(f"{self.name} has no parameter {name!r} here. {closest_hint(name, known)}", source)
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values or len(set(map(repr, values))) < len(values):
                self.refuse(f"the grid of {name!r} is {values!r}. Give a list of different values.", "grid")
        for variant in self.variants():
            try:
                variant.selector().check_parameters()
            except (ValueError, TypeError) as error:
                self.refuse(f"{self.label}: {error}", "grid" if self.grid else "params")

    def variants(self) -> Iterator[Variant]:
        for values in itertools.product(*self.grid.values()):
            choice = dict(zip(self.grid, values, strict=True))
            yield Variant(self.label, self.name, self.params | choice, choice, self.sizes)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a selector as in a plan: the name of the solver, and its options as further parameters."""
    solver = settings["solver"]
    return settings | {"solver": solver.name} | solver.get_params()


class Lines:
    """Line numbers of the keys of a TOML text, which the parser does not report.

    Examples
    --------
    >>> Lines('a = 1\\n[[methods]]\\nlabel = "x"\\n[[methods]]\\nlabel = "y"').of("methods", 1, "label")
    5
    """

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[Any, ...], int] = {}
        table: tuple[Any, ...] = ()
        counts: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[\[\s*([\w.-]+)\s*\]\]", line):
                counts[header[1]] = counts.get(header[1], -1) + 1
                table = (header[1], counts[header[1]])
                self._found[table] = number
            elif header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
                first, *rest = header[1].split(".")
                table = (first, counts[first], *rest) if first in counts else (first, *rest)
                self._found[table] = number
            elif key := re.match(r"\s*([\w-]+)\s*=", line):
                self._found[*table, key[1]] = number

    def of(self, *path: Any) -> int:
        """Return the line of a key, or of its table; 1 if there is neither."""
        while path and path not in self._found:
            path = path[:-1]
        return self._found.get(path, 1)

    def refuse(self, message: str, *path: Any) -> NoReturn:
        """Raise an error that names the line of a key."""
        raise PlanError(f"line {self.of(*path)}: {message}")

    def refuse_unknown_keys(self, table: Mapping[str, Any], known: set[str], *path: Any) -> None:
        for key in table:
            if key not in known:
                self.refuse(f"the key {key!r} is unknown here. {closest_hint(key, sorted(known))}", *path, key)


def _sizes(value: Any, where: Lines, *path: Any) -> tuple[int, ...]:
    """Return numbers of features, given as a list, as ``{from, to, step}`` or as ``"nonzero"``."""
    if value == "nonzero":
        return (NONZERO,)
    if isinstance(value, dict) and set(value) == {"from", "to", "step"} and all(map(_is_count, value.values())):
        value = list(range(value["from"], value["to"] + 1, value["step"]))
    if not isinstance(value, list) or not value or not all(map(_is_count, value)):
        where.refuse(f'sizes={value!r}. Give whole numbers from 1, {{from = 20, to = 400, step = 20}}, or "nonzero".', *path)
    return tuple(sorted(set(value)))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _count(content: Mapping[str, Any], key: str, default: int, where: Lines, *, least: int = 0) -> int:
    value = content.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        where.refuse(f"{key}={value!r}. Give a whole number of at least {least}.", key)
    return value
