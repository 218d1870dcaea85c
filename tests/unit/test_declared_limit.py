"""``k`` stays what was declared whatever the bounds force; what may be chosen is the budget."""

from __future__ import annotations

import ast
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.certificates.verify import verify

RNG = np.random.default_rng(0)
N, P = 40, 7
A = RNG.standard_normal((N, P))
B = A[:, 1] - A[:, 5] + 0.1 * RNG.standard_normal(N)
GROUPS = np.array([0, 0, 1, 1, 2, 2, 3])


def best(k: int, forced: dict[int, float], groups: np.ndarray) -> float:
    """The least mean loss with at most k groups, by enumeration; forced entries lie at a bound."""
    from scipy.optimize import lsq_linear

    low = np.full(P, -np.inf)
    for j, bound in forced.items():
        low[j] = bound
    found = np.inf
    for chosen in itertools.combinations(np.unique(groups), k):
        on = np.isin(groups, chosen)
        if on[list(forced)].all():
            # SciPy wants a nonempty set; k >= 1 here
            fit = lsq_linear(A[:, on], B, (low[on], np.full(on.sum(), np.inf)), tol=1e-14)
            found = min(found, float(np.sum((A[:, on] @ fit.x - B) ** 2)) / (2 * N))
    return found


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
@pytest.mark.parametrize("groups", [np.arange(P), GROUPS])
def test_every_way_to_a_k_gives_the_same_minimum(groups: np.ndarray, scale: float) -> None:
    w, k = sm.Variable(P, name="w"), sm.Parameter(integer=True, name="k")
    goal = sm.minimize(sm.squared_loss(A @ w, scale * B))
    bound = w[[0, 6]] >= 0.3 * scale
    count = sm.card(w, groups=groups)
    followed = sm.Problem(goal, count <= k, bound)
    along = followed.path(k, [2, 3])
    assert k.value is None  # nothing is left behind
    plain = sm.Problem(goal, count <= 2, bound).path([2, 3])
    for place, limit in enumerate((2, 3)):
        wanted = best(limit, {0: 0.3, 6: 0.3}, groups) * scale**2
        k.value = limit
        fresh = sm.Problem(goal, count <= limit, bound).solve().value
        values = (along.objective[place], plain.objective[place], followed.solve().value, fresh)
        assert np.allclose(values, wanted, rtol=1e-6, atol=0.0)
        assert len({int(groups[j]) for j in along.support[place]}) <= limit
        assert len({int(groups[j]) for j in plain.support[place]}) <= limit


def test_a_path_below_what_the_bounds_force_is_refused() -> None:
    w, k = sm.Variable(P, name="w"), sm.Parameter(name="k")
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    with pytest.raises(sm.InfeasibleError, match="Begin at k = 1"):
        sm.Problem(goal, sm.card(w) <= 3, w[0] >= 0.5).path([0, 1])
    with pytest.raises(sm.InfeasibleError, match="Begin at k = 1"):
        sm.Problem(goal, sm.card(w) <= k, w[0] >= 0.5).path(k, [0, 1])


def test_a_path_changes_the_limit_alone() -> None:
    w, k = sm.Variable(P, name="w"), sm.Parameter(name="k")
    loss = sm.squared_loss(A @ w, B)
    twice = sm.Problem(sm.minimize(loss + k * sm.ridge(w, 0.1)), sm.card(w) <= k)
    with pytest.raises(sm.ModelError, match="stands elsewhere"):
        twice.path(k, [1, 2])
    both = sm.Problem(sm.minimize(loss), sm.card(w) <= k, sm.card(w) <= 2)
    path = both.path(k, [1, 2, 3])
    assert [len(support) for support in path.support] == [1, 2, 2]


def test_what_is_printed_is_what_was_declared(tmp_path: Path) -> None:
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3, w[0] >= 0.5)
    certificate = problem.certify()
    for text in (problem.explain(), str(certificate)):
        assert f"at most 3 of {P}" in text
        assert "always in" not in text
    assert (problem.form.sparsity.k, problem.form.sparsity.budget) == (3, 2)

    path = tmp_path / "certificate.json"
    certificate.save(path)
    assert verify(path, problem.form).claim == certificate.claim
    changed = tmp_path / "changed.json"
    for k, forced in ((2, 0), (4, 2), (9, 1)):
        rewritten(path, changed, k=k, forced=forced)
        with pytest.raises(sm.CertificateError, match=r"problem\.(k|forced)"):
            verify(changed, problem.form)


def test_in_a_file_of_the_first_version_k_is_without_the_forced_entries(tmp_path: Path) -> None:
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3, w[0] >= 0.5)
    path = Path(__file__).parent / "certificates_of_version_1" / "kept_away_from_zero.json"
    assert json.loads(path.read_text())["problem"]["k"] == 2
    verify(path, problem.form)
    changed = tmp_path / "changed.json"
    rewritten(path, changed, k=3)
    with pytest.raises(sm.CertificateError, match=r"problem\.k"):
        verify(changed, problem.form)


def rewritten(path: Path, changed: Path, **problem: int) -> None:
    """Write a certificate with other lines about its problem, signed again."""
    body = json.loads(path.read_text())
    body["problem"] |= problem
    del body["digest"]
    body["digest"] = digest(body)
    changed.write_text(json.dumps(body))


def test_who_chooses_asks_for_the_budget() -> None:
    root = Path(__file__).parents[2]
    places = [
        root / "backends",
        *(root / "sparsemodel" / name for name in ("numerics", "certificates", "selection", "cvx")),
    ]
    allowed = {
        "problem_facts.py",
        "certificate_of_precision.py",
        "feasible.py",
        "feasible_supports.py",
    }
    allowed |= {
        "objective_interval.py",
        "verify_precision.py",
        "evaluated.py",
    }  # what they print
    found = []
    for file in (f for place in places for f in sorted(place.rglob("*.py"))):
        if file.name in allowed:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "k":
                owner = node.value.attr if isinstance(node.value, ast.Attribute) else ""
                owner = node.value.id if isinstance(node.value, ast.Name) else owner
                if owner in ("sparsity", "cardinality"):
                    found.append(f"{file.relative_to(root)}:{node.lineno}")
    assert not found, f"k is what was declared; what may be chosen is .budget: {found}"
