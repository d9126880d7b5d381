"""Every line of docs/interoperability.md runs, section by section; packages that are not here skip theirs with a reason."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
IMPORT = re.compile(r"^(?:import|from) (\w+)", flags=re.MULTILINE)


def sections(page):
    """Return the code before the first heading, and that of every section by its title."""
    head, *rest = re.split(r"^## ", page, flags=re.MULTILINE)
    return "\n".join(BLOCK.findall(head)), {part.splitlines()[0]: "\n".join(BLOCK.findall(part)) for part in rest}


START, SECTIONS = sections((ROOT / "docs" / "interoperability.md").read_text())

#: Code of other sections that a section goes on from.
NEEDS = {"ONNX": ["Pipeline", "skops"], "MLflow": ["skops"], "shap": ["skops"]}


def test_the_page_has_what_it_promises():
    promised = "Pipeline, GridSearchCV without refits, Metadata routing, imbalanced-learn, optuna, skops, ONNX, MLflow, shap"
    assert [*SECTIONS] == [*promised.split(", "), "dask-ml", "scanpy", "polars"]
    for title, code in SECTIONS.items():
        assert "assert" in code, f"{title} shows nothing that could be wrong"


@pytest.mark.parametrize("title", SECTIONS)
def test_every_line_runs(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = [SECTIONS[name] for name in (*NEEDS.get(title, []), title)]
    if "make_pipeline" in code[-1] and "Pipeline" not in (title, *NEEDS.get(title, [])):
        code.insert(0, SECTIONS["Pipeline"])
    missing = sorted({name for name in IMPORT.findall("\n".join(code)) if find_spec(name) is None})
    if missing:
        pytest.skip(f"{', '.join(missing)} not here; make test-interop has all of them")
    names: dict[str, object] = {"__name__": "interoperability"}
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # of other packages; our own stay errors
        warnings.filterwarnings("error", module="l20fs|interoperability")
        for block in [START, *code]:
            exec(compile(block, f"docs/interoperability.md: {title}", "exec"), names)
