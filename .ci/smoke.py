"""Everything that needs no extra, once; with the plain wheel and whatever versions are there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

before = set(sys.modules)
import sparsemodel as sm  # noqa: E402

loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
heavy = {"array_api_compat", "cvxpy", "dask", "matplotlib", "networkx", "numba"}
heavy |= {"pandas", "sklearn"}
assert not loaded & heavy, f"importing sparsemodel loads {sorted(loaded & heavy)}"

from sparsemodel.certificates import verify  # noqa: E402

rng = np.random.default_rng(0)
A = rng.standard_normal((60, 12))
signal = A[:, 2] - 2.0 * A[:, 7]
labels = np.where(signal + rng.standard_normal(60) > 0.0, 1.0, -1.0)
TARGETS = {
    "squared": signal + 0.1 * rng.standard_normal(60),
    "huber": signal,
    "absolute": signal,
    "quantile": signal,
    "epsilon_insensitive": signal,
    "logistic": labels,
    "hinge": labels,
    "smoothed_hinge": labels,
    "squared_hinge": labels,
    "poisson": rng.poisson(np.exp(0.3 * signal)),
    "gamma": np.exp(0.3 * signal),
    "cox": np.column_stack([rng.exponential(size=60), rng.random(60) < 0.7]),
}


def problem_of(loss: str, matrix: object, *constraints: object) -> sm.Problem:
    w = sm.Variable(12, name="w")
    u = (sm.as_design(matrix) @ w) if not isinstance(matrix, np.ndarray) else matrix @ w
    term = getattr(sm, f"{loss}_loss")(u, TARGETS[loss])
    return sm.Problem(
        sm.minimize(term + sm.ridge(w, 0.01)), sm.card(w) <= 3, *(make(w) for make in constraints)
    )


for loss in TARGETS:
    problem = problem_of(loss, A)
    solution = problem.solve()
    certificate = problem.certify()
    assert certificate.bound <= solution.value * (1.0 + 1e-9) + 1e-12, loss
    verify(certificate, problem.form)
    print(f"{loss:20} {solution.value:.6g}, bound {certificate.bound:.6g}")

expected = problem_of("squared", A).solve().value
for store in (sp.csr_array, sp.csc_matrix, aslinearoperator, np.asfortranarray):
    assert abs(problem_of("squared", store(A)).solve().value - expected) < 1e-9, store
for info in sm.available_backends():
    if "precision" in info.name:
        continue
    problem = problem_of("squared", A)
    try:
        assert problem.solve(info.name).value >= expected - 1e-9, info.name
    except sm.UnsupportedProblemError as error:
        print(f"{info.name}: {error.reasons}")
for constraint in (lambda w: w >= 0.0, lambda w: sm.norm(w) <= 1.0, lambda w: w.sum() == 1.0):
    problem_of("squared", A, constraint).solve()

problem = problem_of("squared", A)
proof = problem.prove(gap=1e-6, time_limit=120)
print(proof.claim)
problem.restricted(problem.solution.support).solve()  # CVXPY
w, k = sm.Variable(12, name="w"), sm.Parameter(integer=True)
path = sm.Problem(sm.minimize(sm.squared_loss(A @ w, TARGETS["squared"])), sm.card(w) <= k).path(
    k, range(1, 5)
)
path.select("ebic")
omega = sm.Variable((6, 6), symmetric=True)
graph = (
    sm.Problem(
        sm.minimize(-sm.log_det(omega) + sm.trace(np.cov(A[:, :6].T) @ omega)),
        [sm.card(sm.offdiag(omega)) <= 6],
    )
    .solve()
    .graph()
)  # networkx
assert graph.number_of_nodes() == 6

with tempfile.TemporaryDirectory() as folder:
    for ending in ("json", "html", "md", "txt"):
        proof.save(Path(folder) / f"certificate.{ending}")
    verify(Path(folder) / "certificate.json", problem.form)
    table = Path(folder) / "data.csv"
    rows = np.column_stack([A, TARGETS["squared"]])
    np.savetxt(table, rows, delimiter=",", comments="", header=",".join("abcdefghijkly"))
    subprocess.run(
        [sys.executable, "-m", "sparsemodel", "solve", table, "--target", "y", "--k", "3"],
        check=True,
        stdout=subprocess.DEVNULL,
    )

# What needs an extra says which.
try:
    import matplotlib
except ImportError:
    try:
        path.plot()
    except sm.MissingDependencyError as error:
        assert "pip install matplotlib" in str(error), error
    else:
        raise SystemExit("path.plot() works without matplotlib")
try:
    import sklearn
except ImportError:
    try:
        import sparsemodel.sklearn
    except ImportError as error:
        assert "pip install scikit-learn" in str(error), error
    else:
        raise SystemExit("sparsemodel.sklearn can be imported without scikit-learn")
print("all there")
