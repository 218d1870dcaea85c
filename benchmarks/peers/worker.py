"""Runs in the peers' interpreter: ``python worker.py '{"family": ...}'``, a JSON line a run.

The unit is measured here too, in the same process and on the same data.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import problems
from benchmarks.measure import timed, unit_of_array
from benchmarks.peers.solvers import GRAPHS, LINEAR, LOGISTIC, MULTINOMIAL, PROOFS


def compressed_sensing(task: dict[str, Any]) -> None:
    A, b, x = problems.partial_dct(task["p"], task["k"])
    unit = unit_of_array(A)

    def judge(w: Any) -> dict[str, Any]:
        true = np.flatnonzero(x)
        found = np.flatnonzero(w)
        return {
            "error": float(np.linalg.norm(w - x) / np.linalg.norm(x)),
            "recall": float(np.isin(true, found).mean()),
        }

    _run(task, LINEAR, A, b, judge, unit)


def logistic(task: dict[str, Any]) -> None:
    A, y, _ = problems.autoregressive_logistic()
    lam = 1e-6 / A.shape[0]

    def judge(w: Any) -> dict[str, Any]:
        support = np.flatnonzero(w)
        return {
            "loss": problems.refit_logistic(A, y, support, lam),
            "nonzeros": int(support.size),
        }

    _run(task, LOGISTIC, A, y, judge, unit_of_array(A))


def multinomial(task: dict[str, Any]) -> None:
    A, y = problems.classes(*task["case"])

    def judge(w: Any) -> dict[str, Any]:
        support = np.flatnonzero(np.any(w, axis=1))
        return {
            "loss": problems.refit_multinomial(A, y, support, task["ridge"]),
            "nonzeros": int(support.size),
        }

    _run(task, MULTINOMIAL, A, y, judge, unit_of_array(A))


def recovery(task: dict[str, Any]) -> None:
    for seed in range(task["seeds"]):
        A, b, x = problems.linear_recovery(task["n"], seed)
        true = np.flatnonzero(x)

        def judge(w: Any, true: Any = true) -> dict[str, Any]:
            return {"exact": bool(np.array_equal(np.flatnonzero(w), true))}

        _run(task, LINEAR, A, b, judge, unit_of_array(A))


def proofs(task: dict[str, Any]) -> None:
    A, b, _ = problems.best_subset(task["n"], task["p"], task["k"])
    known = {name: lambda A, b, k, prove=prove: prove(A, b, task) for name, prove in PROOFS.items()}

    def judge(answer: Any) -> dict[str, Any]:
        w, gap = answer
        support = np.flatnonzero(np.abs(w) > 1e-6)
        B = A[:, support]
        gram = B.T @ B + task["ridge"] * np.eye(support.size)
        v = np.linalg.solve(gram, B.T @ b)
        value = 0.5 * np.sum((B @ v - b) ** 2) + 0.5 * task["ridge"] * v @ v
        return {"gap": gap, "objective": float(value), "nonzeros": int(support.size)}

    _run(task, known, A, b, judge, unit_of_array(A))


def precision_matrices(task: dict[str, Any]) -> None:
    for seed in range(task["seeds"]):
        S, edges = problems.random_graph(task["p"], task["samples"], task["probability"], seed)
        true = np.triu(edges, 1)

        def judge(omega: Any, S: Any = S, true: Any = true) -> dict[str, Any]:
            found = np.triu(omega, 1) != 0.0
            sign, logdet = np.linalg.slogdet(omega)
            definite = sign > 0.0 and np.linalg.eigvalsh(omega)[0] > 0.0
            return {
                "objective": float(np.sum(S * omega) - logdet) if definite else float("nan"),
                "F": 2.0 * float((found & true).sum()) / float(found.sum() + true.sum()),
            }

        task["k"] = int(true.sum())
        _run(task, GRAPHS, S, None, judge, unit_of_array(S))


def _run(
    task: dict[str, Any], known: dict[str, Any], A: Any, b: Any, judge: Any, unit: float
) -> None:
    for name in task["solvers"]:
        try:
            known[name](A, b, task["k"])  # compiles
            w, timing = timed(functools.partial(known[name], A, b, task["k"]), task["repeats"])
            line = {"solver": name, "quality": judge(w), "unit": unit, **vars(timing)}
        except Exception as error:  # noqa: BLE001 - a peer's failure is a result
            line = {"solver": name, "failure": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    request = json.loads(sys.argv[1])
    {
        "compressed_sensing": compressed_sensing,
        "logistic": logistic,
        "multinomial": multinomial,
        "precision_matrices": precision_matrices,
        "proofs": proofs,
        "recovery": recovery,
    }[request["family"]](request)
