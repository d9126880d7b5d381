"""Coverage-guided fuzzing of one target by atheris: ``python -m fuzz.guided a.csv -max_total_time=60``.

The options are those of libFuzzer. The first fault ends the run; the damaged file is kept as ``crash-...`` by libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["l20fs.data", "l20fs.prediction", "l20fs.report.content"]):
    from fuzz.case import judge
    from fuzz.corpus import Target, make_targets


def largest(folder: Path) -> Path:
    """Return the file of a target that is damaged: the largest one."""
    return max((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)


def main() -> None:
    name, *options = sys.argv[1:]
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    [target] = [each for each in make_targets(corpus) if each.name == name]
    file = largest(corpus / name)
    seeds = corpus / "seeds"
    seeds.mkdir()
    (seeds / "whole").write_bytes(file.read_bytes())
    atheris.Setup([sys.argv[0], str(seeds), *options], lambda content: read(target, corpus / name, file, content))
    atheris.Fuzz()


def read(target: Target, folder: Path, file: Path, content: bytes) -> None:
    """Read a target with other content in one of its files."""
    file.write_bytes(target.seal(content))
    fault, _ = judge(target, folder)
    if fault:
        raise RuntimeError(fault)


if __name__ == "__main__":
    main()
