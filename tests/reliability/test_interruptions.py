"""Ctrl-C, limits, raising callbacks, full disks, too little memory: what was found, or an error."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate
from sparsemodel.certificates.dual_bounds.bound_search import Found
from sparsemodel.certificates.dual_bounds.coefficient_bounds import certifying
from sparsemodel.interfaces import Stop
from sparsemodel.selection.regressions import RegressionObservations


def problem_of(rng: np.random.Generator, p: int = 30, k: int = 6) -> sm.Problem:
    A = rng.standard_normal((80, p))
    w = sm.Variable(p, name="w")
    loss = sm.logistic_loss(A @ w, A[:, 0] + rng.standard_normal(80) > 0.0)
    return sm.Problem(sm.minimize(loss + sm.ridge(w, 0.01)), sm.card(w) <= k)


@pytest.mark.parametrize("backend", [None, "iht", "nhtp", "grahtp", "omp", "local_search"])
def test_an_interrupt_returns_the_best_point_so_far(backend, rng: np.random.Generator):
    problem = problem_of(rng)
    reference = problem.solve(backend)
    problem = problem_of(np.random.default_rng(20240229))
    seen = []

    def interrupting(event):
        seen.append(event.best)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return False

    # In the background of a shell Ctrl-C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        solution = problem.solve(backend, callback=interrupting)
    finally:
        signal.signal(signal.SIGINT, before)
    assert solution.stop.value == "interrupted" or len(seen) < 2
    assert solution.value <= seen[0] + 1e-12
    assert len(solution.support) <= 6
    assert problem.solve(backend).value == pytest.approx(reference.value, rel=1e-9)


def test_a_raising_callback_is_passed_on_and_nothing_is_kept(rng: np.random.Generator):
    problem = problem_of(rng)
    first = problem.solve()

    def raising(event):
        raise LookupError("not found")

    with pytest.raises(LookupError, match="not found"):
        problem.solve(callback=raising)
    assert problem.solution is first
    assert problem.solve().value == first.value


def test_no_time_at_all_gives_a_feasible_point(rng: np.random.Generator):
    solution = problem_of(rng, 300, 20).solve(time_limit=0.0)
    assert np.isfinite(solution.value)
    assert len(solution.support) <= 20
    assert solution.status == "stopped early"


@pytest.mark.usefixtures("at_the_root")
@pytest.mark.parametrize("name", ["from_data", "search"])
def test_an_interrupt_while_a_box_is_sought_keeps_the_bound(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
):
    """Bounds on the coefficients are no part of the search that keeps what it found."""
    A = rng.standard_normal((60, 80))
    w = sm.Variable(80)
    loss = sm.squared_loss(A @ w, A[:, 0] + rng.standard_normal(60))
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-2)), sm.card(w) <= 3)
    problem.solve()

    def interrupted(*_: object, **__: object) -> Found:
        if name == "from_data":
            raise KeyboardInterrupt
        return Found((), (), interrupted=True)

    monkeypatch.setattr(certifying, name, interrupted)
    certificate = problem.certify()
    assert "interrupted" in certificate.bound_source
    assert 0.0 <= certificate.bound <= certificate.value


def test_ctrl_c_keeps_the_halves_that_were_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    path = problem_of(np.random.default_rng(0), 8, 3).path(range(4))
    whole, last = path.stability(resamples=4, seed=1), 4
    solutions, begun = RegressionObservations.solutions, list[object]()

    def interrupted(*given: object) -> object:
        begun.append(given)
        if len(begun) > last:
            raise KeyboardInterrupt
        return solutions(*given)

    monkeypatch.setattr(RegressionObservations, "solutions", interrupted)
    with pytest.warns(UserWarning, match="those of 4 of 9 halves") as said:
        found = path.stability(resamples=9, seed=1)
    np.testing.assert_array_equal(found, whole)  # halves are drawn in the same order
    assert said[0].filename == __file__
    last = len(begun)
    with pytest.raises(KeyboardInterrupt):
        path.stability(resamples=9, seed=1)


@pytest.mark.parametrize("name", ["certify", "prove"])
@pytest.mark.parametrize("fewest", [False, True])
def test_ctrl_c_in_a_first_solve_ends_what_it_is_for(
    name: str, fewest: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for a proof began all the same, and took all of its time limit."""
    problem = problem_of(rng, 8, 3)
    if fewest:
        w, A = sm.Variable(8), rng.standard_normal((30, 8))
        problem = sm.Problem(sm.minimize(sm.card(w)), sm.squared_loss(A @ w, A[:, 0] + 1.0) <= 0.4)
        problem.solve()
    solve = sm.Problem.solve

    def interrupted(*given: object) -> sm.Solution:
        return replace(solve(*given), stop=Stop.INTERRUPTED)

    monkeypatch.setattr(sm.Problem, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(problem, name)()
    monkeypatch.setattr(sm.Problem, "solve", solve)
    assert problem.solution.support.size <= 8
    assert np.isfinite(getattr(problem, name)().bound)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return problem_of(np.random.default_rng(20240229)).certify()


@pytest.mark.parametrize("ending", ["json", "html", "md", "txt"])
def test_a_full_disk_leaves_the_old_file_and_no_rubbish(
    ending, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = tmp_path / f"report.{ending}"
    certificate.save(target)
    before = target.read_bytes()
    real = os.replace

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        certificate.save(target)
    monkeypatch.setattr(os, "replace", real)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full_is_an_error_of_the_shell(tmp_path: Path):
    table = tmp_path / "data.csv"
    rows = np.random.default_rng(0).standard_normal((20, 3))
    np.savetxt(table, rows, delimiter=",", header="a,b,y", comments="")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sparsemodel", "solve", str(table), "--target", "y", "--k", "1"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


MEMORY = """
import resource
import numpy as np
import sparsemodel as sm
from scipy.sparse import random_array
A = random_array((2000, 200_000), density=1e-3, format="csc", rng=np.random.default_rng(0))
w = sm.Variable(200_000, name="w")
problem = sm.Problem(
    sm.minimize(sm.squared_loss(A @ w, np.ones(2000)) + sm.ridge(w, 0.1)), sm.card(w) <= 5
)
problem.plan()
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {extra} * 2**20, resource.RLIM_INFINITY))
try:
    print("solved", len(problem.solve({backend!r}).support))
except (MemoryError, sm.SparseModelError) as error:
    print("refused", type(error).__name__)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("again", len(problem.solve({backend!r}).support))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
@pytest.mark.parametrize("extra", [1, 400])
def test_too_little_memory_is_an_error_and_the_problem_survives(extra: int):
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(extra=extra, backend="iht")],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = done.stdout.split("\n")[:2]
    assert first in ("solved 5", "refused MemoryError")
    assert second == "again 5"


FULL = """
import errno, resource, sys
import numpy as np
import sparsemodel as sm
from pathlib import Path
from sparsemodel.cli import main

A = np.random.default_rng(0).standard_normal((80, 60))
w = sm.Variable(60, name="w")
loss = sm.squared_loss(A @ w, A[:, 0])
problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 3)
certificate = problem.certify()
certificate.save("old.json")
np.savez("data.npz", X=A, y=A[:, 0])
resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
for name in ("old.json", "new.json", "new.html"):
    try:
        certificate.save(name)
    except OSError as error:
        print(errno.errorcode[error.errno])
print(main(["solve", "data.npz", "--k", "3", "--certificate", "shell.json"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of files as Linux has them")
def test_a_file_that_cannot_grow_is_whole_or_absent(tmp_path: Path):
    """The system stops the writing itself, after some hundred bytes."""
    done = subprocess.run(
        [sys.executable, "-c", FULL], capture_output=True, text=True, timeout=100, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.strip().split("\n")
    assert lines[:3] == ["EFBIG"] * 3
    assert lines[-1] == "6"
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "old.json"]
    Certificate.load(tmp_path / "old.json")
