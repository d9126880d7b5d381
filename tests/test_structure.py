"""The house itself: who may import whom, and what an import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import l20fs

SOURCE = Path(l20fs.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# A module may import from its own level and from those below it.
LEVELS = [
    ["typing", "defaults", "text", "files"],
    ["inputs", "prediction"],
    ["design"],
    ["objective"],
    ["solvers", "bounds", "evaluation"],
    ["estimators", "methods"],
    ["__init__", "data", "plots", "anndata", "deployment", "inspection"],
    ["tables"],
    ["report", "compare"],
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


def test_imports_point_downwards():
    for file in FILES:
        own = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name in imports(file):
            if name.startswith("l20fs."):
                assert level(name.split(".")[1]) <= level(own), f"{file.relative_to(SOURCE)} imports {name}"


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_no_optional_package():
    """Beyond what scikit-learn itself takes in where it finds it (pandas, for one)."""
    use_all = "import l20fs, l20fs.anndata, l20fs.data, l20fs.deployment; [getattr(l20fs, name) for name in l20fs.__all__]"
    added = loaded_by(use_all) - loaded_by("import sklearn.feature_selection, scipy.sparse.linalg")
    assert "l20fs" in added
    optional = {"torch", "dask", "cupy", "matplotlib", "jinja2", "click", "anndata", "pandas", "polars"}
    assert not added & (optional | {"onnx", "onnxruntime", "skl2onnx", "skops", "mlflow"})


def test_public_names_are_loaded_when_they_are_used():
    assert not loaded_by("import l20fs; l20fs.__version__, dir(l20fs)") & {"numpy", "scipy", "sklearn"}
    assert "sklearn" in loaded_by("from l20fs import L20Selector")
    assert set(l20fs.__all__) <= set(dir(l20fs))
    with pytest.raises(AttributeError, match="module 'l20fs' has no attribute 'L20'"):
        _ = l20fs.L20
