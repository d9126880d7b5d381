"""Every attack of ``tests/attacks`` through the command line: nothing runs, hangs, crashes or exceeds its memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from platforms import needs_linux

from attacks import attacks_of, modules

#: Memory above 1.5 times the cap that is no fault: pages of the interpreter that a fork copies when it writes to them.
SLACK = 2**26


@needs_linux
@pytest.mark.parametrize("module", modules())
def test_attacks(module, tmp_path):
    attacks, cases = attacks_of(module), []
    for each in attacks:
        folder = tmp_path / each.name
        folder.mkdir()
        cases.append({"arguments": each.make(folder), "cwd": str(folder), "seconds": 60.0, "free": each.cap})
    outcomes = run_cases(cases)
    faults = [fault for each, outcome in zip(attacks, outcomes, strict=True) if (fault := fault_of(each, outcome, tmp_path))]
    assert not faults, "\n\n".join(faults)


def run_cases(cases):
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "attacks.runner"]
    done = subprocess.run(command, input=json.dumps(cases), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def fault_of(attack, outcome, folder):
    """Say what is wrong with the outcome of an attack; nothing if it was held."""
    said, faults = outcome["stderr"], []
    if outcome["code"] != attack.code:
        faults.append(f"exit code {outcome['code']}, not {attack.code}")
    if "Traceback" in said:
        faults.append("a traceback")
    if not re.search(attack.says, said, re.MULTILINE):
        faults.append(f"does not say {attack.says!r}")
    if (folder / attack.name / "canary").exists():
        faults.append("code was run")
    if attack.cap is not None and attack.code and outcome["peak"] > 1.5 * attack.cap + outcome["base"] + SLACK:
        faults.append(f"{outcome['peak'] / 2**20:.0f} MiB at a cap of {attack.cap / 2**20:.0f} MiB")
    return f"{attack.name}: {', '.join(faults)}\n{said[-1500:]}" if faults else ""
