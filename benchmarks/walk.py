"""Files and functions of l20fs that a fit, and ``l20fs select`` of a CSV, pass: ``python benchmarks/walk.py``.

One ``L20Selector(20).fit``, one ``L20SelectorCV().fit`` and one ``l20fs select`` of the built-in tumours (63 x 2308, 4
classes), each after a first one that loads what is imported late. Calls are those of Python functions in all threads of
this process.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd

import l20fs
from l20fs.cli import run
from l20fs.data import load_srbct

PACKAGE = str(Path(l20fs.__file__).parent)


def calls_of(work: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """Return how often some work calls each function, by its file and name."""
    counts: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            counts[code.co_filename[len(PACKAGE) + 1 :], code.co_qualname] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return counts


def report(name: str, counts: Counter[tuple[str, str]]) -> None:
    """Print the files that a fit passed, with their functions in the order in which they were first called."""
    functions = defaultdict(list)
    for (file, function), n_calls in counts.items():
        functions[file].append(f"{function} {n_calls}")
    print(f"{name}: {len(functions)} files, {len(counts)} functions, {counts.total()} calls")
    for file, named in functions.items():
        print(f"  {file}: {', '.join(named)}")


def main() -> None:
    tumours = load_srbct()
    for estimator in (l20fs.L20Selector(20), l20fs.L20SelectorCV()):
        estimator.fit(tumours.data, tumours.target)
        report(f"{type(estimator).__name__}.fit", calls_of(partial(estimator.fit, tumours.data, tumours.target)))
    with tempfile.TemporaryDirectory() as folder:
        table = pd.DataFrame(tumours.data, columns=tumours.feature_names).assign(type=tumours.target)
        table.to_csv(f"{folder}/table.csv", index=False)
        command = ["select", f"{folder}/table.csv", "--target", "type", "-o", f"{folder}/out", "--force"]
        run(command)
        report("l20fs select", calls_of(partial(run, command)))


if __name__ == "__main__":
    main()
