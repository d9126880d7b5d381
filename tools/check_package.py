"""Check what was built: every file of the repository in the sdist, licences in the wheel, absolute links, a valid recipe.

python tools/check_package.py dist
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from rattler_build import Stage0Recipe

ROOT = Path(__file__).parents[1]

#: Files of the repository that are of no use without it.
NOT_IN_SDIST = {".ci/run", ".gitignore"}


def check_sdist(file: Path) -> None:
    """Compare the sdist with the files that git knows."""
    with tarfile.open(file) as archive:
        found = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    known = {name for name in tracked if name}
    assert known - NOT_IN_SDIST <= found, f"not in the sdist: {sorted(known - NOT_IN_SDIST - found)}"
    assert found <= known | {"PKG-INFO"}, f"in the sdist, but not in git: {sorted(found - known)}"


def check_wheel(file: Path) -> None:
    """Check the licences, the data and the metadata of the wheel."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        fields = email.message_from_bytes(archive.read(metadata))
    for licence in ("licenses/LICENSE", "licenses/LICENSES/ISLP.txt"):
        assert any(name.endswith(f".dist-info/{licence}") for name in names), f"the wheel lacks {licence}"
    for data in ("l20fs/data/srbct.npz", "l20fs/py.typed", "l20fs/report/templates/report.html"):
        assert data in names, f"the wheel lacks {data}"
    links = re.findall(r"\]\(([^)]+)\)", fields.get_payload())
    assert links, "the long description has no links"
    assert all(link.startswith(("https://", "#")) for link in links), "the long description has relative links"


def check_recipe(file: Path) -> None:
    """Let rattler-build parse and render the recipe of conda-forge."""
    rendered = Stage0Recipe.from_yaml(file.read_text()).render()
    assert rendered, "the recipe has no output"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    check_sdist(next(folder.glob("*.tar.gz")))
    check_wheel(next(folder.glob("*.whl")))
    check_recipe(ROOT / "packaging" / "conda-forge" / "recipe.yaml")
    print("sdist, wheel and recipe: ok")
