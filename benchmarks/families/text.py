"""Mail as 226549 terms, 1000 of them chosen: test accuracy against a dense linear classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.data.load import load
from benchmarks.data.transforms import tfidf
from benchmarks.measure import Record, peak_beyond, timed, unit_of_array
from benchmarks.options import Options

RIDGES = (1e-6, 1e-5, 1e-4)
"""What cross-validation on the training mails chooses from; the test mails are looked at once."""
FOLDS = 3


def run(options: Options) -> list[Record]:
    """Return logistic and smoothed hinge at k = 1000, and scikit-learn's LinearSVC."""
    data = load("spam_text")
    k = 100 if options.quick else 1000
    X = tfidf(data.X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    order = np.random.default_rng(0).permutation(X.shape[0])
    test, train = np.sort(order[: X.shape[0] // 5]), np.sort(order[X.shape[0] // 5 :])
    A, B = X[train], X[test]
    y, z = np.where(data.y > 0, 1.0, -1.0)[train], np.where(data.y > 0, 1.0, -1.0)[test]
    unit = unit_of_array(A)
    case = f"{A.shape[0]} x {A.shape[1]}, k={k}"
    out = []
    losses = {"logistic": sm.logistic_loss, "smoothed hinge": sm.smoothed_hinge_loss}
    for name, loss in losses.items():
        ridge, scores = _cross_validated(loss, A, y, k)

        def solve(loss: Any = loss, ridge: float = ridge) -> tuple[Any, Any, Any]:
            return _solve(loss, A, y, k, ridge)

        (solution, w, c), timing = timed(solve, min(options.repeats, 3))
        accuracy = _accuracy(B, z, w, c)
        out.append(
            Record(
                "text",
                case,
                f"sparsemodel {name}",
                {"test accuracy": accuracy, "nonzeros": int(np.count_nonzero(w))},
                timing,
                unit,
                passes=solution.passes,
                peak_mb=peak_beyond(solve),
                notes=f"ridge {ridge:g}, chosen by {FOLDS} folds of the training mails; "
                f"{solution.backend}",
                extra={"ridge": ridge, "cross-validated": scores},
            )
        )
    return out + _dense(A, y, B, z, unit, case, options)


def _solve(loss: Any, A: Any, y: Any, k: int, ridge: float) -> tuple[Any, Any, Any]:
    w, c = sm.Variable(A.shape[1]), sm.Variable()
    objective = sm.minimize(loss(sm.as_design(A) @ w + c, y) + sm.ridge(w, ridge))
    return sm.Problem(objective, sm.card(w) <= k).solve(), w.value, c.value


def _accuracy(B: Any, z: Any, w: Any, c: Any) -> float:
    return float(np.mean(np.where(B @ w + c > 0.0, 1.0, -1.0) == z))


def _cross_validated(loss: Any, A: Any, y: Any, k: int) -> tuple[float, dict[str, float]]:
    """Return the ridge with the best mean accuracy on held-out training mails, and all of these."""
    fold = np.random.default_rng(1).permutation(A.shape[0]) % FOLDS
    scores = {}
    for ridge in RIDGES:
        accuracies = []
        for held_out in range(FOLDS):
            inside, outside = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
            _, w, c = _solve(loss, A[inside], y[inside], k, ridge)
            accuracies.append(_accuracy(A[outside], y[outside], w, c))
        scores[ridge] = float(np.mean(accuracies))
    best = max(RIDGES, key=lambda ridge: scores[ridge])
    return best, {f"{ridge:g}": score for ridge, score in scores.items()}


def _dense(
    A: Any, y: Any, B: Any, z: Any, unit: float, case: str, options: Options
) -> list[Record]:
    try:
        from sklearn.svm import LinearSVC
    except ImportError:
        return []
    model, timing = timed(lambda: LinearSVC().fit(A, y), min(options.repeats, 3))
    accuracy = float(model.score(B, z))
    nonzeros = int(np.count_nonzero(model.coef_))
    quality = {"test accuracy": accuracy, "nonzeros": nonzeros}
    return [Record("text", case, "scikit-learn LinearSVC", quality, timing, unit)]
