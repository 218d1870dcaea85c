"""A worker of a cluster that dies in the middle of a solve costs time, not the answer."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

CLUSTER = """
import os, signal
import dask.array as da, numpy as np, sparsemodel as sm
from distributed import Client, LocalCluster

def main():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 100))
    x = np.zeros(100); x[:5] = [1.0, -2.0, 1.5, 1.0, -1.0]
    y = np.where(A @ x + rng.standard_normal(3000) > 0.0, 1.0, -1.0)

    def solve(design, callback=None):
        w = sm.Variable(100)
        loss = sm.logistic_loss(sm.as_design(design) @ w, y) + sm.ridge(w, 1e-3)
        problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 5)
        return problem.solve("nhtp", callback=callback), w.value

    expected, value = solve(A)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            killed = []

            def lose_a_worker(event):
                if event.index == 1:
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])

            solution, other = solve(da.from_array(A, chunks=(500, 100)), lose_a_worker)
    assert killed
    assert solution.support.tolist() == expected.support.tolist()
    assert np.allclose(value, other, rtol=1e-9)
    print("survived")

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_worker_that_dies_is_survived(tmp_path):
    pytest.importorskip("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(textwrap.dedent(CLUSTER))
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=110, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "survived" in run.stdout
