"""Files beside the package say the same as pyproject.toml: versions, minimum versions, extras, licences."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import l20fs

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def minimum_versions(requirements):
    """Return the minimum version of each requirement, without markers and extras."""
    found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement) for requirement in requirements]
    return {match[1]: match[2] for match in found if match}


def test_the_version_has_one_place():
    assert l20fs.__version__ == version("l20fs")
    assert PROJECT["dynamic"] == ["version", "readme"]
    (newest, *_) = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    (recipe,) = re.findall(
        r'^  version: "(\S+)"$', (ROOT / "packaging/conda-forge/recipe.yaml").read_text(), flags=re.MULTILINE
    )
    assert newest == cited == recipe == l20fs.__version__


def test_an_extra_asks_for_the_same_versions_everywhere():
    for name, requirements in EXTRAS.items():
        for package, least in minimum_versions(requirements).items():
            others = {minimum_versions(other).get(package, least) for other in EXTRAS.values()}
            assert others == {least}, f"{package} of the extra {name}"
    assert set(re.findall(r"\w+", EXTRAS["all"][0].partition("[")[2])) == set(EXTRAS) - {"all", "dev"}


def test_the_recipe_asks_for_the_versions_of_the_package_and_of_its_command_line():
    recipe = (ROOT / "packaging/conda-forge/recipe.yaml").read_text().partition("  run:\n")[2].partition("\ntests:")[0]
    asked = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", recipe, flags=re.MULTILINE))
    assert asked == minimum_versions([*PROJECT["dependencies"], *EXTRAS["cli"]])


def test_every_extra_is_tried_in_a_clean_environment():
    tried = re.findall(r'^    "(\w*)": ', (ROOT / "tools" / "check_extras.py").read_text(), flags=re.MULTILINE)
    assert set(tried) == {"", *EXTRAS} - {"dev"}


def test_the_image_installs_extras_that_exist():
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', (ROOT / "Dockerfile").read_text())
    assert {"cli"} <= set(extras.split(",")) <= set(EXTRAS)


def test_every_version_of_python_is_tested_that_is_promised():
    promised = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    (listed,) = re.findall(
        r"^        python: \[(.*)\]$", (ROOT / ".github/workflows/test.yml").read_text(), flags=re.MULTILINE
    )
    assert promised == set(re.findall(r"3\.\d+", listed))
    assert min(promised, key=lambda name: int(name[2:])) == PROJECT["requires-python"].removeprefix(">=")


@pytest.mark.parametrize("workflow", ["test.yml", "release.yml"])
def test_workflows_call_targets_that_exist(workflow):
    text = (ROOT / ".github" / "workflows" / workflow).read_text()
    (called,) = [set(re.findall(r"[a-z-]+", found)) for found in re.findall(r"target: \[(.*)\]", text)] or [set()]
    called |= {word for line in re.findall(r"run: make ([a-z -]+)", text) for word in line.split()}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert called <= targets


def test_keywords_hold_no_comma_and_licences_are_there():
    assert not [word for word in PROJECT["keywords"] if "," in word]
    notice = (ROOT / "LICENSES" / "ISLP.txt").read_text()
    assert "srbct.npz" in notice
    assert "Redistributions in binary form must reproduce the above copyright" in notice
    assert PROJECT["license-files"] == ["LICENSE", "LICENSES/*"]
