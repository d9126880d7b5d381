"""Plant known faults in copies of the source, one at a time, and see the acceptance tests catch each: ``make mutants``.

``tools/mutants.toml`` has a name, a sentence, a file of src/l20fs and a replacement of text for each. Whoever moves the code
moves the mutant: a text that is not found exactly once is an error. Arguments are parts of names; without any, all run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "l20fs"
TESTS = ROOT / "tests" / "acceptance"

#: The summary line of pytest for a test that failed, or could not run.
FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?([^/\s]+\.py\S*)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A fault: in ``file`` the text ``old`` is replaced by ``new``. ``tests`` is the file that is to catch it, run first."""

    name: str
    sentence: str
    file: str
    old: str
    new: str
    tests: str

    def plant(self, package: Path) -> None:
        """Plant the fault in a copy of the package."""
        file = package / self.file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text.count(self.old) != 1:
            raise LookupError(
                f"{self.file} has the text {text.count(self.old)} times, not once. Move the mutant with the code."
            )
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")

    def catch(self) -> str | None:
        """Return the acceptance test that fails with this fault, if there is one."""
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "l20fs"
            shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
            self.plant(package)
            return run_tests(folder, TESTS / self.tests) or run_tests(folder, TESTS)


def run_tests(folder: str, tests: Path) -> str | None:
    """Return the first test that fails on the package in a folder, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--assert=plain", "-p", "no:cacheprovider", str(tests)]
    environment = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "CI": "true"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    found = FAILED.search(done.stdout)
    if done.returncode != 1 or found is None:
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[1]


def main(names: list[str]) -> int:
    """Run the mutants whose names contain one of ``names``; return 1 if one of them survives or is not found."""
    stored = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    mutants = [Mutant(**fields) for fields in stored]
    chosen = [mutant for mutant in mutants if not names or any(name in mutant.name for name in names)]
    if not chosen:
        sys.exit(f"No mutant is called {' or '.join(names)}. There are: {', '.join(mutant.name for mutant in mutants)}.")
    if fault := run_tests(str(SOURCE.parent), TESTS):
        sys.exit(f"The acceptance tests fail without any mutant: {fault}.")
    n_faults = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, caught in zip(chosen, [pool.submit(mutant.catch) for mutant in chosen], strict=True):
            try:
                by = caught.result() or "SURVIVED"
            except LookupError as error:
                by = f"NOT PLANTED: {error}"
            n_faults += by.startswith(("SURVIVED", "NOT PLANTED"))
            print(f"{mutant.name:28} {mutant.sentence}\n{'':28} -> {by}", flush=True)
    print(f"{len(chosen) - n_faults} of {len(chosen)} mutants are caught.")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
