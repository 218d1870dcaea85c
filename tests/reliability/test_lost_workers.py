"""A worker of a cluster that dies in the middle of a call costs time, not the answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLUSTER = """
import os, signal, warnings
import dask.array as da, numpy as np, sparsemodel as sm
from dask.delayed import delayed
from distributed import Client, LocalCluster
from sparsemodel.designs.remote import columns, workers

warnings.simplefilter("error", UserWarning)  # Dask's, of graphs that hold data, among them
columns.KEPT_BYTES = 2**22  # columns come over, but not all of them
SHAPE = (12000, 60)  # blocks of more than a megabyte, which go beside the graph

def made(part):
    return np.random.default_rng(part).standard_normal((SHAPE[0] // 4, SHAPE[1]))

def main():
    A = np.concatenate([made(part) for part in range(4)])
    x = np.zeros(SHAPE[1]); x[:5] = [1.0, -2.0, 1.5, 1.0, -1.0]
    score = A @ x + np.random.default_rng(9).standard_normal(SHAPE[0])
    here = da.from_array(A, chunks=(3000, 60))
    there = da.concatenate([
        da.from_delayed(delayed(made)(part), (3000, 60), dtype=float) for part in range(4)])

    def posed(design, loss):
        w = sm.Variable(SHAPE[1])
        target = score if loss is sm.squared_loss else np.where(score > 0.0, 1.0, -1.0)
        goal = sm.minimize(loss(sm.as_design(design) @ w, target) + sm.ridge(w, 1e-3))
        return sm.Problem(goal, sm.card(w) <= 5)

    calls = {
        "solve": lambda problem: [problem.solve().value],
        "path": lambda problem: list(problem.path(range(1, 7)).objective),
        "certify": lambda problem: certified(problem.certify()),
    }
    def certified(found):
        # The search for a bound amplifies the order of sums; what it finds is checked as it is.
        return [found.value, round(found.bound / found.value, 4)]

    placed = workers.placed

    def lossy(pids, after):
        count = 0

        def watched(tasks):
            nonlocal count
            count += 1
            if count == after:
                os.kill(pids.pop(), signal.SIGKILL)
            return placed(tasks)

        return watched

    cases = [
        (name, after[loss is sm.squared_loss], loss, design)
        for name, after in (("solve", (6, 2)), ("path", (3, 2)), ("certify", (9, 9)))
        for loss, design in ((sm.logistic_loss, here), (sm.squared_loss, there))
    ]
    for name, after, loss, design in cases:
        expected = calls[name](posed(A, loss))
        # One each: a killed worker comes back late, or never, on a busy machine.
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
            with Client(cluster) as client:
                pids = list(client.run(os.getpid).values())
                workers.placed = lossy(pids, after)
                try:
                    found = calls[name](posed(design, loss))
                finally:
                    workers.placed = placed
        assert len(pids) == 1, (name, loss)
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9), (name, found, expected)
        print(name, loss.__name__, "survived", flush=True)

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_worker_that_dies_is_survived(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=390, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.count("survived") == 6
