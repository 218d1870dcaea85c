"""Shen and Li (JMLR 2018): measurements that recovery takes. The bound itself is tested in
``tests/properties/test_support_selection_laws.py`` and attained in ``tests/unit``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.algorithms.instances import objective_of, run, shen_li_sensing
from sparsemodel_backends.ht_svrg import HTSVRG
from sparsemodel_backends.iht import IHT
from sparsemodel_backends.pgd import PGD


def successes(backend, K, n, k, trials):
    """Success is ``||x' - x|| < 1e-3``, as in the paper; ``k`` coefficients are kept."""
    count = 0
    for seed in range(trials):
        A, b, x = shen_li_sensing(np.random.default_rng(seed), n, K)
        with np.errstate(all="ignore"):  # a step of 1 may diverge
            result = run(backend, objective_of(A, b, k))
        count += np.linalg.norm(result.point.x - x) < 1e-3
    return count


def test_keeping_more_coordinates_takes_fewer_measurements():
    """Figure 1 at K = 4, n = 60: PGD with k = 9K recovers where IHT with a step of 1 does not."""
    relaxed = successes(PGD(relaxation=9, max_iter=10_000, tol=1e-10), 4, 60, 4, 2)
    assert relaxed == 2
    assert successes(IHT(step_size=1.0, max_iter=300), 4, 60, 4, 10) < 10
    assert successes(IHT(), 4, 60, 4, 10) >= 9  # the default, with a line search


def test_many_measurements_recover_22_coefficients():
    """Figure 2: with 232 measurements HT-SVRG (k = 9K) recovers K = 22 reliably."""
    assert successes(HTSVRG(), 22, 232, 9 * 22, 10) >= 8


@pytest.mark.parametrize("K", [4, 8, 16])
def test_measurements_for_95_percent(K):
    """Figure 3: n = 1.7 K log 256 + 33 for 95 %; here at k = K, which needs no 9K columns."""
    n = round(1.7 * K * np.log(256) + 33)
    assert successes(HTSVRG(), K, n, K, 10) >= 9


@pytest.mark.slow
@pytest.mark.timeout(900)  # of a busy machine
def test_80_percent_of_16_sparse_signals_take_175_measurements():
    """Figure 2: HT-SVRG with k = 9K and far more stages than the default."""
    backend = HTSVRG(tol=1e-10, max_iter=500, patience=500)
    assert successes(backend, 16, 175, 9 * 16, 20) >= 14  # 80 % less two standard deviations


@pytest.mark.slow
@pytest.mark.timeout(900)  # of a busy machine
@pytest.mark.parametrize("K", [2, 6, 12, 20])
def test_phase_transition(K):
    """Figure 1, a column: nothing at n = K + 1, all at n = 256 and ever more between."""
    grid = (K + 1, 2 * K + 16, 6 * K + 32, 256)
    for backend in (IHT(), PGD(relaxation=3), HTSVRG()):
        rates = [successes(backend, K, n, K, 30) / 30 for n in grid]
        assert rates[0] <= 0.1
        assert rates[-1] == 1.0
        assert all(later >= earlier - 0.1 for earlier, later in pairwise(rates))
