"""The house itself: who may import whom, what an import loads, what every public object must have."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import l20fs
from l20fs.data import make_planted
from l20fs.design import DenseDesign

SOURCE = Path(l20fs.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# A module may import from its own level and from those below it.
LEVELS = [
    ["typing", "defaults", "text", "storage"],
    ["inputs", "blocks", "prediction"],
    ["design"],
    ["objective"],
    ["solvers", "bounds", "evaluation"],
    ["estimators", "methods"],
    ["__init__", "data", "plots", "anndata", "deployment", "inspection"],
    ["report", "experiments"],
    ["cli"],
    ["__main__"],
]


def level(module):
    return next(i for i, names in enumerate(LEVELS) if module in names)


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module if node.module != "l20fs" else "l20fs.__init__"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_downwards(file):
    own = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    for name in imports(file):
        if name.startswith("l20fs."):
            assert level(name.split(".")[1]) <= level(own), f"{own} imports {name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_private_name_of_another_package(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("l20fs") and node.module != "__future__":
            parts = node.module.split(".") + [alias.name for alias in node.names]
            assert not any(part.startswith("_") for part in parts), f"{file.name}: {node.module}"


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_no_optional_package():
    """Beyond what scikit-learn itself takes in where it finds it (pandas, for one)."""
    use_all = "import l20fs, l20fs.anndata, l20fs.data, l20fs.deployment; [getattr(l20fs, name) for name in l20fs.__all__]"
    added = loaded_by(use_all) - loaded_by("import sklearn.feature_selection, scipy.sparse.linalg")
    assert "l20fs" in added
    optional = {"torch", "dask", "cupy", "matplotlib", "jinja2", "click", "rich", "anndata", "pandas", "polars"}
    assert not added & (optional | {"onnx", "onnxruntime", "skl2onnx", "skops", "mlflow"})


def test_public_names_are_loaded_when_they_are_used():
    assert not loaded_by("import l20fs; l20fs.__version__, dir(l20fs)") & {"numpy", "scipy", "sklearn"}
    assert "sklearn" in loaded_by("from l20fs import L20Selector")
    assert set(l20fs.__all__) <= set(dir(l20fs))
    with pytest.raises(AttributeError, match="module 'l20fs' has no attribute 'L20'"):
        _ = l20fs.L20


@pytest.mark.parametrize("name", l20fs.__all__)
def test_public_objects_are_documented(name):
    thing = getattr(l20fs, name)
    assert inspect.getdoc(thing)
    members = inspect.getmembers(thing, callable) if inspect.isclass(thing) else [(name, thing)]
    for member, function in members:
        if inspect.isfunction(function) and not member.startswith("_") and function.__module__.startswith("l20fs"):
            assert inspect.getdoc(function), f"{name}.{member} has no docstring"
            hints = inspect.get_annotations(function)
            assert "return" in hints, f"{name}.{member} says not what it returns"


@pytest.mark.parametrize("solver", ["forward", "swap", "ahiht", "hiht"])
def test_at_most_five_hops_from_fit_to_the_product_with_X(solver, monkeypatch):
    """Calls of this package between ``fit`` and a product of X with a residual, where nothing is evaluated lazily.

    ``scale="auto"`` takes one product more, when the problem is made.
    """
    hops, pull = [], DenseDesign.pull

    def counted(self, *arguments, **options):
        names = [frame.name for frame in traceback.extract_stack() if str(SOURCE) in frame.filename]
        if "__get__" not in names:  # no attribute that is computed once, such as the products with the targets
            hops.append(len(names) - names.index("fit"))
        return pull(self, *arguments, **options)

    monkeypatch.setattr(DenseDesign, "pull", counted)
    X, y, _ = make_planted(n_samples=40, n_features=200, n_informative=3, random_state=0)
    l20fs.L20Selector(3, solver=solver, scale="zscore").fit(X, y)
    assert hops
    assert max(hops) <= 5


def test_no_isinstance_on_designs_outside_their_room():
    kinds = {"DenseDesign", "SparseDesign", "DeviceDesign", "GramDesign", "ColumnDesign", "BlockDesign", "Design"}
    for file in FILES:
        if "design" in file.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.args[1])}
                assert not names & kinds, f"{file.name}:{node.lineno}"
