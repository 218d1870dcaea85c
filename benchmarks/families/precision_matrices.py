"""Sparse precision matrices at the true number of edges, beside GraphicalLasso and splicing.

The protocol of Yuan, Li and Zhang (JMLR 2018, section 6.3.1): 100 samples, a tenth of the possible
edges, condition number ``p``. GraphicalLasso finds its penalty by bisection and is refitted
without penalty on its largest edges; splicing is skscope's, on the same likelihood. Quality and
times are means over random graphs; splicing takes minutes and runs on the first alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.measure import Record, Timing, timed, unit_of_array
from benchmarks.options import Options
from benchmarks.peers.call import ask, records
from benchmarks.peers.solvers import GRAPHS
from benchmarks.precision import Instance, Score, by_backend, by_default, by_lasso, instance
from sparsemodel_backends.precision import PrecisionExchange, PrecisionGraHTP, PrecisionSwap

SAMPLES, PROBABILITY = 100, 0.1

METHODS: dict[str, Callable[[Instance], Score]] = {
    "sparsemodel": by_default,
    "sparsemodel, precision_swap": by_backend(PrecisionSwap()),
    "sparsemodel, precision_exchange": by_backend(PrecisionExchange()),
    "sparsemodel, precision_grahtp": by_backend(PrecisionGraHTP()),
    "scikit-learn GraphicalLasso, refitted": by_lasso,
}


def run(options: Options) -> list[Record]:
    """Return every method on graphs of 60, 120 and 200 variables, three of each by default."""
    seeds = range(min(3, options.repeats))
    for method in METHODS.values():
        method(instance(8, SAMPLES, PROBABILITY, 0))  # imports are not part of the times
    out = []
    for p in (30,) if options.quick else (60, 120, 200):
        data = [instance(p, SAMPLES, PROBABILITY, seed) for seed in seeds]
        case = f"p = {p}, {int(np.mean([one.k for one in data]))} edges"
        unit = unit_of_array(data[0].covariance)
        for name, method in METHODS.items():
            runs = [timed(partial(method, one), 1) for one in data]
            scores = [score for score, _ in runs]
            quality = {
                "objective": float(np.mean([score.objective for score in scores])),
                "objective, first graph": scores[0].objective,
                "F": float(np.mean([score.f_score for score in scores])),
            }
            cpu = [score.cpu for score in scores]  # of the search, without the judging
            wall = float(np.mean([timing.wall for _, timing in runs]))
            timing = Timing(float(np.mean(cpu)), wall, min(cpu), len(cpu))
            out.append(Record("precision_matrices", case, name, quality, timing, unit))
        task = {
            "family": "precision_matrices",
            "solvers": list(GRAPHS),
            "p": p,
            "samples": SAMPLES,
            "probability": PROBABILITY,
            "seeds": 1,  # minutes each
            "repeats": 1,
        }
        for record in records("precision_matrices", case, ask(options, task, seconds=90.0)):
            record.notes = record.notes or "the first graph alone"
            if "objective" in record.quality:
                record.quality["objective, first graph"] = record.quality.pop("objective")
            out.append(record)
    return out
