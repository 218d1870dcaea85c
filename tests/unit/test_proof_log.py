"""The log of a proof: its lines, its numbers, the same for every kind of problem."""

from __future__ import annotations

import io

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.reporting.proof_log import ProofLog


def test_a_line_comes_with_every_better_point_and_at_the_end():
    stream = io.StringIO()
    log = ProofLog(stream)
    log(2.0, -np.inf, 0, 1)
    log(2.0, 1.0, 1, 2)  # nothing new to see within half a second
    log(1.5, 1.0, 2, 3)
    log(1.5, np.inf, 3, 0)
    log.close()
    log.close()
    head, *lines = stream.getvalue().splitlines()
    assert head.split() == ["time", "nodes", "open", "best", "objective", "best", "bound", "gap"]
    assert [line.split()[2:] for line in lines] == [
        ["0", "1", "2", "none", "-"],
        ["2", "3", "1.5", "1", "33.3", "%"],
        ["3", "0", "1.5", "1.5", "0", "%"],
    ]
    assert len({len(line) for line in (head, *lines)}) == 1


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
def test_verbose_proofs_of_all_losses_print_the_same_table(loss, capsys):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((30, 8))
    y = np.sign(a[:, 0] - a[:, 1] + rng.standard_normal(30))
    w = sm.Variable(8)
    problem = sm.Problem(sm.minimize(loss(a @ w, y) + sm.ridge(w, 0.05)), sm.card(w) <= 2)
    problem.solve()
    capsys.readouterr()
    problem.prove(verbose=False)
    assert capsys.readouterr().err == ""
    proof = problem.prove(gap=1e-6, verbose=True)
    head, *lines = capsys.readouterr().err.splitlines()
    assert head.split()[:3] == ["time", "nodes", "open"]
    last = lines[-1].split()
    assert float(last[4]) == pytest.approx(proof.value, rel=1e-8)
    assert float(last[5]) <= proof.value * (1.0 + 1e-8)
    assert last[-1] == "%"
