"""Several precision matrices with one pattern of edges."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import PrecisionCertificate, verify
from sparsemodel.certificates.files.json_document import json_text, signed
from sparsemodel.certificates.precision_matrices.ascent import Tasks
from sparsemodel.certificates.precision_matrices.spectral_bounds import dual_value
from sparsemodel.checker.__main__ import main as check
from tests.referee.feasible_matrices import newton

Case = tuple[list[Any], list[Any], list[float]]


def drawn(seed: int, p: int = 5, m: int = 2, *, scale: float = 1.0) -> Case:
    """Return observations of matrices with a pattern in common, variables and weights."""
    rng = np.random.default_rng(seed)
    pattern = np.tril(rng.random((p, p)) < 0.4, -1)
    data = []
    for _ in range(m):
        mix = np.eye(p) + pattern * rng.normal(size=(p, p))
        n = int(rng.integers(p + 3, 60))
        data.append(scale * rng.standard_normal((n, p)) @ np.linalg.inv(mix).T)
    names = [f"O{g}" for g in range(m)]
    variables = [sm.Variable((p, p), symmetric=True, name=name) for name in names]
    return data, variables, rng.choice([0.3, 1.0, 5.0], m).tolist()


def declared(case: Case, k: Any, *constraints: Any) -> sm.Problem:
    data, variables, weights = case
    found = zip(weights, variables, data, strict=True)
    goal = sm.minimize(sum(w * sm.gaussian_nll(omega, data=X) for w, omega, X in found))
    return sm.Problem(goal, sm.card(sm.offdiag(*variables)) <= 2 * k, *constraints)


def value_on(case: Case, edges: Any) -> float:
    """Return the least objective on a pattern, by the referee's own Newton method."""
    data, variables, weights = case
    mask = np.eye(variables[0].shape[0], dtype=bool)
    for i, j in edges:
        mask[i, j] = mask[j, i] = True
    total = 0.0
    for w, X in zip(weights, data, strict=True):
        S = np.cov(X.T, bias=True)
        omega = newton(S, mask)
        total += w * float(np.sum(S * omega) - np.linalg.slogdet(omega)[1])
    return total


def best_of(case: Case, k: int) -> float:
    pairs = list(combinations(range(case[1][0].shape[0]), 2))
    return min(value_on(case, chosen) for chosen in combinations(pairs, k))


@pytest.mark.parametrize(
    ("seed", "p", "m", "k", "scale"),
    [
        (1, 4, 3, 2, 1e4),
        pytest.param(0, 5, 2, 3, 1.0, marks=pytest.mark.slow),
        pytest.param(2, 5, 2, 4, 1e-4, marks=pytest.mark.slow),
        pytest.param(3, 3, 4, 1, 1.0, marks=pytest.mark.slow),
        pytest.param(4, 5, 3, 0, 1.0, marks=pytest.mark.slow),
    ],
)
def test_against_all_patterns(
    seed: int, p: int, m: int, k: int, scale: float, tmp_path: Path
) -> None:
    """The best pattern is found, the bound is one, and the checker finds the certificate true."""
    case = drawn(seed, p, m, scale=scale)
    problem, best = declared(case, k), best_of(case, k)
    solution = problem.solve()
    assert solution.value == pytest.approx(best, abs=1e-6 * sum(case[2]))
    assert problem.path(range(k, k + 2)).objective[0] == pytest.approx(solution.value)
    certificate = problem.certify()
    assert solution.bound <= certificate.bound <= best + 1e-9 * (1.0 + abs(best))
    certificate.save(tmp_path / "graph.json")
    assert verify(tmp_path / "graph.json", problem.form).claim is certificate.claim
    np.savez(tmp_path / "data.npz", **{f"X{g}": X for g, X in enumerate(case[0])})
    assert check([str(tmp_path / "graph.json"), str(tmp_path / "data.npz")]) == 0


def test_against_cvxpy() -> None:
    cp = pytest.importorskip("cvxpy")
    case = drawn(5, 4, 2)
    solution = declared(case, 2, case[1][0] << 1.5).solve()
    unknowns = [cp.Variable((4, 4), symmetric=True) for _ in case[1]]
    inside = {tuple(pair) for pair in solution.indices.tolist()}
    out = [pair for pair in combinations(range(4), 2) if pair not in inside]
    goal = sum(
        w * (-cp.log_det(omega) + cp.trace(np.cov(X.T, bias=True) @ omega))
        for w, omega, X in zip(case[2], unknowns, case[0], strict=True)
    )
    held = [omega[i, j] == 0.0 for omega in unknowns for i, j in out]
    cp.Problem(cp.Minimize(goal), [*held, unknowns[0] << 1.5 * np.eye(4)]).solve(solver="CLARABEL")
    assert solution.value == pytest.approx(goal.value, rel=1e-6)
    for ours, theirs in zip(case[1], unknowns, strict=True):
        np.testing.assert_allclose(ours.value, theirs.value, atol=1e-3)
    assert solution.notes == ("O0: the upper eigenvalue bound 1.5 is active",)


@pytest.mark.parametrize("seeds", [(0, 3), pytest.param((3, 12), marks=pytest.mark.slow)])
def test_no_worse_than_the_largest_sums_of_partial_correlations(seeds: tuple[int, int]) -> None:
    for seed in range(*seeds):
        case = drawn(seed, 6, 3)
        case = (*case[:2], [1.0, 1.0, 1.0])
        total = np.zeros((6, 6))
        for X in case[0]:
            P = np.linalg.inv(np.cov(X.T))
            total += np.square(P) / np.outer(np.diag(P), np.diag(P))
        pairs = sorted(combinations(range(6), 2), key=lambda pair: -total[pair])
        assert declared(case, 4).solve().value <= value_on(case, pairs[:4]) + 1e-7


def test_copies_of_one_matrix_are_that_matrix() -> None:
    (X,), (omega,), _ = drawn(6, 5, 1)
    alone = sm.Problem(
        sm.minimize(3.0 * sm.gaussian_nll(omega, data=X)), sm.card(sm.offdiag(omega)) <= 6
    )
    twins = [sm.Variable((5, 5), symmetric=True) for _ in range(2)]
    both = declared(([X, X], twins, [1.0, 2.0]), 3)
    one, two = alone.solve(), both.solve()
    assert two.value == pytest.approx(one.value)
    assert list(two.values) == ["Omega_1", "Omega_2"]
    for twin in twins:
        np.testing.assert_allclose(twin.value, omega.value, rtol=1e-5)
    bound = alone.certify().bound  # that of both is a bit lower: one may be where the other is not
    assert one.value - 1.1 * (one.value - bound) <= both.certify().bound <= bound + 1e-6


@pytest.mark.parametrize("m", [1, 2, 3])
def test_dual_points_prove_bounds_and_their_slopes_are_slopes(m: int) -> None:
    case = drawn(7, 4, m)
    case = (*case[:2], [1e-2, 1.0, 30.0][:m])
    form: Any = declared(case, 2).form
    best = (best_of(case, 2) - form.constant) / form.weight
    units = [None, (0, 1, 0, -1), None][:m]
    rng = np.random.default_rng(m)
    for _ in range(4):
        tasks = Tasks(form, best + 1e-6, units)
        for _ in range(3):
            U = 0.1 * rng.standard_normal((m, form.shape[0]))
            mu = rng.random(m) / np.array([box.beta for box in tasks.boxes]) ** 2
            assert tasks.value(U, mu) <= best + 1e-9
            tasks.narrow(U, mu)
    forms, shares = [task.form for task in tasks.each], form.shares
    at = dual_value(forms, U, mu, tasks.boxes, shares)
    for g in range(m):
        step = np.zeros_like(U)
        step[g] = 1e-6 * rng.standard_normal(U.shape[1])
        ends = [dual_value(forms, U + s * step, mu, tasks.boxes, shares)[0] for s in (1, -1)]
        assert ends[0] - ends[1] == pytest.approx(2.0 * float(np.sum(at[1] * step)), rel=1e-3)


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    case = drawn(0)
    problem = declared(case, 3)
    problem.solve()
    certificate = problem.certify()
    found = PrecisionCertificate.from_json(certificate.to_json())
    assert found.problem == certificate.problem
    assert found.edges == certificate.edges
    np.savez(tmp_path / "data.npz", X0=case[0][0], X1=case[0][1])

    def refused(change: Any) -> int:
        changed = {key: value for key, value in certificate.to_dict().items() if key != "digest"}
        change(changed)
        path = tmp_path / "changed.json"
        path.write_text(json_text(signed(changed)))
        with pytest.raises(sm.CertificateError):
            verify(path, problem.form)
        return check([str(path), str(tmp_path / "data.npz")])

    assert refused(lambda b: b["problem"]["others"][0].update(weight=1.0 + case[2][1])) == 1
    assert refused(lambda b: b["problem"]["others"][0].update(k=4)) == 1
    assert refused(lambda b: b["problem"].update(others=None)) == 1
    assert refused(lambda b: b["edges"][0].update(others=[0.9])) == 1
    assert refused(lambda b: b["witness"].update(moduli=[-1.0] * len(b["witness"]["moduli"]))) == 1
    assert refused(lambda b: b["witness"].update(moduli=b["witness"]["moduli"][1:])) == 1
    assert refused(lambda b: b.update(bound=b["value"])) == 1
    other = declared((case[0][::-1], case[1], case[2]), 3)
    with pytest.raises(sm.CertificateError, match=r"line .problem\."):
        verify(certificate, other.form)


def test_edges_that_are_known_and_the_number_of_edges() -> None:
    case = drawn(8, 5, 2)
    k = sm.Parameter(integer=True, value=2, name="k")
    known = [
        rule(omega, pairs)
        for omega in case[1]
        for rule, pairs in ((sm.required_edges, [(0, 1)]), (sm.forbidden_edges, [(2, 3)]))
    ]
    problem = declared(case, k, *known)
    solution = problem.solve()
    assert len(solution.support) == 2
    for omega in case[1]:
        assert omega.value[0, 1] != 0.0 == omega.value[2, 3]
    path = problem.path(k, range(9))
    for point in (0, 3, 8):
        n, size = [len(X) for X in case[0]], path.objective
        assert np.all(np.diff(size) <= 1e-9)
        one = path.at(point)
        fit = [
            len(X) * (float(np.sum(np.cov(X.T, bias=True) * own)) - np.linalg.slogdet(own)[1])
            for X, own in zip(case[0], one.values.values(), strict=True)
        ]
        edges = len(one.support)
        bic = sum(fit) + (edges + 6) * float(np.sum(np.log(n)))
        assert path.select("bic").scores[point] == pytest.approx(bic)
        assert path.select("ebic").scores[point] == pytest.approx(bic + 2.0 * edges * np.log(5))
    with pytest.raises(sm.ModelError, match=r'path\.select\("ebic"\)'):
        path.cross_validate()
    with pytest.raises(sm.UnsupportedProblemError, match="the sum of the bounds"):
        problem.prove(time_limit=1.0)


def test_what_is_shown() -> None:
    case = drawn(0)
    problem = declared(case, 3)
    solution = problem.solve()
    text = str(solution)
    assert "3 of 10 edges" in text
    i, j = solution.indices[0].tolist()
    values = [omega.value for omega in case[1]]
    each = [float(-v[i, j] / np.sqrt(v[i, i] * v[j, j])) for v in values]
    assert f"{i} -- {j}  {each[0]:+.4f}, {each[1]:+.4f}" in text
    assert solution.graph("O1").edges[i, j]["weight"] == pytest.approx(each[1])
    with pytest.raises(sm.ModelError, match=r"graph\('O0'\)"):
        solution.graph()
    assert sm.card(sm.offdiag(*case[1])).value == 6
    plan = " ".join(problem.explain().split())
    assert "2 matrices of order 5 with one pattern, at most 3 of 10 edges" in plan
    found = " ".join(str(problem.certify()).split())
    assert "one pattern, at most 3 of 10 edges" in found
    assert "No pattern with as many edges" in found


def test_what_cannot_be_declared_says_what_to_write() -> None:
    (A, B), (one, two), _ = drawn(1, 4, 2)
    both = sm.minimize(sm.gaussian_nll(one, data=A) + sm.gaussian_nll(two, data=B))
    joint = sm.card(sm.offdiag(one, two)) <= 4
    for constraints in ([sm.card(sm.offdiag(one)) <= 4], []):
        with pytest.raises(sm.ModelError, match=r"sm\.card\(sm\.offdiag\(O0, O1\)\) <= 2 \* k"):
            sm.Problem(both, *constraints)
    with pytest.raises(sm.ModelError, match="forbidden_edges` of each matrix"):
        sm.Problem(both, joint, sm.forbidden_edges(one, [(0, 1)]))
    with pytest.raises(sm.ModelError, match="O1 has no likelihood"):
        sm.Problem(sm.minimize(sm.gaussian_nll(one, data=A)), joint)
    with pytest.raises(sm.ModelError, match="names a matrix twice"):
        sm.offdiag(one, one)
    with pytest.raises(sm.ModelError, match="matrices of one shape"):
        sm.offdiag(one, sm.Variable((3, 3), symmetric=True))
    with pytest.raises(sm.ModelError, match="cannot be part of a precision-matrix problem"):
        sm.Problem(sm.minimize(both.objective + sm.ridge(one, 1.0)), joint)
    loss = sm.squared_loss(one - np.eye(4)) + sm.squared_loss(two - np.eye(4))
    with pytest.raises(sm.ModelError, match="which precision matrices may"):
        sm.Problem(sm.minimize(loss), joint)
    pd = pytest.importorskip("pandas")
    first, second = pd.DataFrame(A, columns=list("abcd")), pd.DataFrame(B, columns=list("abdc"))
    named = sm.gaussian_nll(one, data=first) + sm.gaussian_nll(two, data=second)
    with pytest.raises(sm.ModelError, match="variable 2 is 'c' in one and 'd' in the other"):
        sm.Problem(sm.minimize(named), joint)
    with pytest.raises(sm.UnsupportedProblemError, match="precision_swap"):
        sm.Problem(both, joint).solve("precision_grahtp")


@pytest.mark.parametrize("limit", [12, 4])
def test_the_checker_takes_trivial_bounds_and_variables_in_very_different_units(
    limit: int, tmp_path: Path
) -> None:
    """Twelve entries are all of them: the bound is that of any number of edges."""
    rng = np.random.default_rng(2)
    units = np.ones(4) if limit == 12 else 10.0 ** np.array([2, -2, 0, 1])
    X = rng.standard_normal((60, 4)).cumsum(axis=1) * units
    omega = sm.Variable((4, 4), symmetric=True)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=X)), sm.card(sm.offdiag(omega)) <= limit
    )
    problem.solve()
    certificate = problem.certify()
    assert (certificate.witness.final is None) == (limit == 12)
    certificate.save(tmp_path / "graph.json")
    np.savez(tmp_path / "data.npz", X=X)
    assert check([str(tmp_path / "graph.json"), str(tmp_path / "data.npz")]) == 0
