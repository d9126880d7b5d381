"""Run commands of l20fs in forks of one warm interpreter: ``python -m attacks.runner < cases.json > outcomes.json``.

A case has ``arguments``, the folder in which to run (``cwd``) and a time limit (``seconds``). Its outcome has the exit code
(negative: killed by a signal, None: out of time), stderr, the peak memory in bytes, and that of an idle interpreter.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

#: Backstop for what is not refused: more memory than this raises MemoryError in the child.
MOST_MEMORY = 12 * 2**30


def load_everything() -> None:
    """Import all that a command may load, so that the forks start with it."""
    import pandas  # noqa: F401

    import l20fs.cli.compare
    import l20fs.cli.predict
    import l20fs.cli.samples
    import l20fs.cli.search
    import l20fs.cli.select
    import l20fs.cli.validate  # noqa: F401

    for name in ("anndata.io", "h5py", "zarr", "pyarrow.parquet", "python_calamine"):
        with suppress(ImportError):
            __import__(name)


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Run one command in a fork."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.chdir(case["cwd"])
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(output.fileno(), 2)
            code = 99
            try:
                from l20fs.cli import run
                from l20fs.tables import memory

                if case.get("free") is not None:
                    memory.free = lambda: case["free"]
                code = run(case["arguments"])
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        status, usage = _wait(child, case.get("seconds", 60.0))
        output.seek(0)
        text = output.read().decode(errors="replace")
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return {"code": code, "stderr": text[-5000:], "peak": usage.ru_maxrss * 1024}


def _wait(child: int, seconds: float) -> tuple[int | None, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return status, usage
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return None, os.wait4(child, 0)[2]


def main() -> None:
    load_everything()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    outcomes = [run_case(case) | {"base": base} for case in json.load(sys.stdin)]
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
