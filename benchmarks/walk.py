"""Files and functions of l20fs that a fit passes: ``python benchmarks/walk.py``.

One ``L20Selector(20).fit`` and one ``L20SelectorCV().fit`` of the built-in tumours (63 x 2308, 4 classes), after a first one
that loads what is imported late. Calls are those of Python functions in all threads of this process.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

import l20fs
from l20fs.data import load_srbct

PACKAGE = str(Path(l20fs.__file__).parent)


def calls_of(estimator: Any, X: Any, y: Any) -> Counter[tuple[str, str]]:
    """Return how often a fit calls each function, by its file and name."""
    counts: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            counts[code.co_filename[len(PACKAGE) + 1 :], code.co_qualname] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        estimator.fit(X, y)
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
        report(f"{type(estimator).__name__}.fit", calls_of(estimator, tumours.data, tumours.target))


if __name__ == "__main__":
    main()
