"""Recipes of docs/scale.md: a LocalCluster, and a scheduler and two workers that are started by hand, as the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from l20fs import L20Selector
from l20fs.data import make_planted

pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
LOCAL = re.compile(r"<!-- on one machine -->\n\n```python\n(.*?)```", re.DOTALL)
BY_HAND = re.compile(r"<!-- by hand -->\n\n```bash\n(.*?)```\n\n```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """X and y, and the folder that has them as X.zarr and y.npy."""
    X, y, _ = make_planted(n_samples=300, n_features=200, n_informative=5, n_classes=3, random_state=0)
    stored = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, chunks=(50, 200), dtype=X.dtype)
    stored[:] = X
    np.save(tmp_path / "y.npy", y)
    monkeypatch.chdir(tmp_path)
    return X, y


def run_code(code):
    names = {"__name__": "__main__"}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
def test_the_recipe_for_one_machine(planted):
    [code] = LOCAL.findall(PAGE.read_text())
    names = run_code(code)
    with names["client"].cluster, names["client"] as client:
        assert len(client.scheduler_info()["workers"]) == 2
        assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.task_prefixes))  # the fit was done there
    np.testing.assert_array_equal(names["selector"].support_, L20Selector(n_features_to_select=5).fit(*planted).support_)


def test_the_recipe_by_hand_survives_the_loss_of_a_worker(planted):
    [(shells, code)] = BY_HAND.findall(PAGE.read_text())
    commands = [line.split("#")[0].split() for line in shells.splitlines()]
    assert [command[:2] for command in commands] == [["dask", "scheduler"], ["dask", "worker"], ["dask", "worker"]]
    # Any free port, and no page of Dask: others may run this test at the same time. A worker that is killed stays away.
    instead = {
        "scheduler": ["--port", "0", "--no-dashboard", "--host", "127.0.0.1"],
        "worker": ["--no-dashboard", "--no-nanny"],
    }
    processes = []
    try:
        for _, kind, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, *instead[kind]]
            processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        names = run_code(code)
        with names["client"] as client:
            assert len(client.scheduler_info()["workers"]) == 2

            def kill_a_worker(stage):
                if processes[-1].poll() is None:
                    processes[-1].kill()
                    processes[-1].wait()

            found = L20Selector(n_features_to_select=5, callback=kill_a_worker).fit(names["X"], planted[1])
            assert processes[-1].poll() is not None
        expected = L20Selector(n_features_to_select=5).fit(*planted)
        np.testing.assert_array_equal(names["selector"].support_, expected.support_)
        np.testing.assert_array_equal(found.support_, expected.support_)
    finally:
        for process in processes:
            process.kill()
            process.wait()
