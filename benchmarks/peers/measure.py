"""Run one method on one problem and write what it took: the inside of one process of ``run.py``.

``python measure.py METHOD PROBLEM REPEATS GIGABYTES FILE`` appends a line of JSON to FILE after every run, so that what is
finished stays when the process is stopped. Imports and compilers are over before the clock starts: the method has solved a
tiny problem by then. Peak memory is that of the process, with the data and all that was imported.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from data import Problem, load, warm_up
from methods import METHODS, Select


def timed(select: Select, problem: Problem) -> dict[str, Any]:
    """Return the seconds, by the clock and of the processor, and the rows of each k, in the order in which they came."""
    seconds, processor, rows = {}, {}, {}
    begin, begin_there = time.perf_counter(), time.process_time()
    for k, chosen in select(problem):
        seconds[k], processor[k] = time.perf_counter() - begin, time.process_time() - begin_there
        rows[k] = sorted(int(row) for row in chosen)
    return {"seconds": seconds, "processor": processor, "rows": rows}


def peak_megabytes() -> float:
    """Return the high-water mark of this process; ``ru_maxrss`` would start from that of the parent."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main() -> None:
    method, problem, repeats, gigabytes, file = sys.argv[1:]
    limit = int(float(gigabytes) * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    warnings.simplefilter("ignore")
    select = METHODS[method].select
    timed(select, warm_up())
    data = load(problem)
    begin, n_runs = time.perf_counter(), 0
    with open(file, "a") as lines:
        # A few milliseconds are at the mercy of whatever else the machine does: short runs are repeated for a second.
        while n_runs < int(repeats) or (time.perf_counter() - begin < 1.0 and n_runs < 50):
            run = timed(select, data)
            n_runs += 1
            print(json.dumps(run | {"megabytes": peak_megabytes()}), file=lines, flush=True)


if __name__ == "__main__":
    main()
