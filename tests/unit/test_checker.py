"""The separate checker: agrees with verify() on what holds, and refuses what was forged."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.files.json_document import json_text, signed
from sparsemodel.certificates.proving import beyond_root
from sparsemodel.checker.__main__ import main

ROOT = Path(__file__).parents[2]
RNG, N, P = np.random.default_rng(3), 20, 6
A = RNG.standard_normal((N, P))
A[:, 1] += 0.5 * A[:, 0]
B = A[:, 0] - 2.0 * A[:, 3] + 0.7 * RNG.standard_normal(N)
SIGNS = np.where(B > 0.0, 1.0, -1.0)
COUNTS = np.floor(np.exp(0.3 * A[:, 0]) * RNG.gamma(2.0, 1.0, N))
SIZES = np.exp(0.3 * A[:, 0]) * RNG.gamma(2.0, 0.5, N)
CLASSES = np.digitize(B, [-0.7, 0.7]).astype(float)
TWO = np.column_stack([B, A[:, 2] + RNG.standard_normal(N)])
OFFSET, WEIGHTS = RNG.standard_normal(N), RNG.random(N)
TIMES = np.column_stack([RNG.integers(1, 9, N), RNG.integers(0, 2, N)]).astype(float)
STRATA = np.column_stack([np.minimum(TIMES[:, 0], 3.0), TIMES[:, 1], np.arange(N) % 2])
WIDE = RNG.standard_normal((40, 30))
WIDE[:, 1:] += 0.5 * WIDE[:, :-1]
WIDE_B = WIDE[:, 3] - WIDE[:, 9] + RNG.standard_normal(40)


def declared(
    loss: Callable[..., Any],
    target: np.ndarray,
    *,
    matrix: np.ndarray = A,
    ridge: float = 0.05,
    k: int = 2,
    c: bool = False,
    columns: int = 0,
    more: Callable[[Any], list[Any]] | None = None,
    offset: np.ndarray | None = None,
    **options: Any,
) -> tuple[sm.Problem, dict[str, np.ndarray]]:
    p = matrix.shape[1]
    w = sm.Variable((p, columns) if columns else p, name="w")
    u = matrix @ w if offset is None else matrix @ w + offset
    goal = loss(u + sm.Variable(name="c") if c else u, target, **options)
    goal = goal + sm.ridge(w, ridge) if ridge else goal
    limit = [sm.card(w, axis=1) <= k if columns else sm.card(w) <= k] if more is None else more(w)
    return sm.Problem(sm.minimize(goal), limit), {"A": matrix, "b": target}


def graph() -> tuple[sm.Problem, dict[str, np.ndarray]]:
    omega = sm.Variable((P, P), symmetric=True, name="Omega")
    allowed = [sm.card(sm.offdiag(omega)) <= 4, sm.forbidden_edges(omega, [(0, 5)])]
    return sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=A)), allowed), {"A": A}


def boxed(w: Any) -> list[Any]:
    return [sm.card(w) <= 3, w <= 0.6, w >= -0.6]


PROBLEMS: dict[str, Callable[[], tuple[sm.Problem, dict[str, np.ndarray]]]] = {
    "squared": lambda: declared(sm.squared_loss, B),
    "squared, tree": lambda: declared(sm.squared_loss, B, ridge=1e-3, k=3, c=True),
    "huber": lambda: declared(sm.huber_loss, B, delta=0.8, offset=OFFSET),
    "absolute": lambda: declared(sm.absolute_loss, B, c=True),
    "quantile": lambda: declared(sm.quantile_loss, B, tau=0.3),
    "epsilon": lambda: declared(sm.epsilon_insensitive_loss, B, epsilon=0.2),
    "hinge": lambda: declared(sm.hinge_loss, SIGNS),
    "smoothed hinge": lambda: declared(sm.smoothed_hinge_loss, SIGNS, gamma=0.5, c=True),
    "squared hinge": lambda: declared(sm.squared_hinge_loss, SIGNS),
    "logistic": lambda: declared(sm.logistic_loss, (SIGNS > 0.0).astype(float), c=True),
    "poisson": lambda: declared(sm.poisson_loss, COUNTS, c=True),
    "gamma": lambda: declared(sm.gamma_loss, SIZES),
    "expectile": lambda: declared(sm.expectile_loss, B, tau=0.8, weights=WEIGHTS),
    "negative binomial": lambda: declared(sm.negative_binomial_loss, COUNTS, theta=2.0, c=True),
    "tweedie": lambda: declared(sm.tweedie_loss, SIZES * (B > -1.0), power=1.3, c=True),
    "multinomial": lambda: declared(sm.multinomial_loss, CLASSES, columns=3),
    "cox": lambda: declared(sm.cox_loss, TIMES, weights=WEIGHTS, offset=OFFSET),
    "cox, tree": lambda: declared(sm.cox_loss, TIMES, ridge=0.01, k=3, weights=WEIGHTS),
    "cox, efron, strata": lambda: declared(sm.cox_loss, STRATA, ties="efron", weights=WEIGHTS),
    "cox, no ridge": lambda: declared(sm.cox_loss, TIMES, ties="efron", ridge=0.0),
    "two responses": lambda: declared(sm.squared_loss, TWO, columns=2),
    "box, no ridge": lambda: declared(sm.absolute_loss, B, ridge=0.0, more=boxed),
    "groups": lambda: declared(
        sm.squared_loss, B, more=lambda w: [sm.card(w, groups=[0, 0, 1, 1, 2, 2]) <= 2]
    ),
    "always in": lambda: declared(sm.squared_loss, B, c=True, more=lambda w: [sm.card(w[2:]) <= 2]),
    "parts": lambda: declared(
        sm.squared_loss, B, more=lambda w: [sm.card(w) <= 3, sm.card(w[:4]) <= 2]
    ),
    "forced": lambda: declared(sm.squared_loss, B, more=lambda w: [sm.card(w) <= 3, w[2] >= 0.1]),
    "curvature": lambda: declared(sm.squared_loss, WIDE_B, matrix=WIDE, k=4),
    "no ridge": lambda: declared(sm.squared_loss, WIDE_B, matrix=WIDE, ridge=0.0, c=True, k=3),
    "neighbours": lambda: declared(sm.squared_loss, WIDE_B, matrix=WIDE, ridge=0.0, c=True, k=3),
    "no ridge, huber": lambda: declared(sm.huber_loss, B, ridge=0.0, delta=0.8, c=True),
    "no ridge, poisson": lambda: declared(sm.poisson_loss, COUNTS, ridge=0.0, c=True),
    "exact fit": lambda: declared(sm.squared_loss, A[:, 0] - 2.0 * A[:, 3], ridge=0.0),
    "graph": graph,
    "graph, tree": graph,
}
PIECEWISE = ("squared, tree", "no ridge, huber", "expectile", "hinge", "groups", "box, no ridge")
PROVED = ("squared, tree", "hinge", "logistic", "cox, tree", "neighbours", "graph, tree")


def at_the_root(problem: sm.Problem) -> Any:
    with pytest.MonkeyPatch.context() as without:
        without.setattr(beyond_root, "worth_searching", lambda *given, **options: False)
        return problem.certify()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, tuple[Path, Path, Any, sm.Problem]]:
    """Certificates of all problems with their data, made when they are asked for."""
    folder = tmp_path_factory.mktemp("certificates")

    class Made(dict):
        def __missing__(self, name: str) -> tuple[Path, Path, Any, sm.Problem]:
            problem, arrays = PROBLEMS[name]()
            problem.solve()
            # Without a limit of time, so that a busy machine makes the same certificates.
            gap = 1e-3 if name.startswith("graph") else 1e-6
            certificate = problem.prove(gap=gap) if name in PROVED else at_the_root(problem)
            data = folder / f"{name}.npz"
            np.savez(data, **arrays)
            made = certificate.save(folder / f"{name}.json"), data, certificate, problem
            return self.setdefault(name, made)

    return Made()


@pytest.mark.parametrize("name", PROBLEMS)
def test_holds_and_says_what_verify_says(files, name: str, capsys) -> None:
    path, data, certificate, problem = files[name]
    assert main([str(path), str(data)]) == 0, capsys.readouterr().out
    found = verify(path, problem.form)
    assert capsys.readouterr().out.endswith(f"bounds: {found.claim.value}\n")
    assert found.claim is certificate.claim


def test_the_certificates_are_of_many_kinds(files) -> None:
    held = [files[name][2] for name in PROBLEMS if "graph" not in name]
    assert any(c.witness.extraction is not None for c in held)
    assert any(c.witness.bounds is not None and c.witness.bounds.neighbours.size for c in held)
    trees = [c.proof["tree"] for c in held if c.proof]
    nodes = [node for t in trees for node in t["nodes"]]
    assert {"at", "duals", "enumerated"} <= {key for node in nodes for key in node}
    assert max(len(t["nodes"]) for t in trees) >= 5
    assert len({c.claim for c in held}) >= 3
    assert files["graph"][2].witness.final is not None


@pytest.mark.parametrize("name", PIECEWISE)
def test_exact_rational_arithmetic_agrees(files, name: str, capsys) -> None:
    path, data, *_ = files[name]
    assert main([str(path), str(data), "--exact"]) == 0, capsys.readouterr().out
    assert "HOLDS, in exact rational arithmetic" in capsys.readouterr().out


UNCOMPARED = {"writer", "assumptions", "bound_method", "bound_reason", "allowance", "violations"}
UNCOMPARED |= {"digest", "method", "active", "recipe", "samples"}
DECLARED = {"alpha", "beta"}
"""Another number is another problem, which the report prints; the bound may hold for it as well."""


def numbers_in(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Return the way to every number of a file that the checker says it compares."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if at == () and key in UNCOMPARED:
            continue
        if isinstance(inner, (dict, list)):
            yield from numbers_in(inner, (*at, key))
        elif isinstance(inner, (int, float)) and key not in UNCOMPARED | DECLARED:
            yield (*at, key)


@pytest.mark.parametrize("name", ["squared", "logistic", "curvature", "graph"])
def test_every_number_that_is_changed_is_noticed(files, name: str, tmp_path) -> None:
    path, data, *_ = files[name]
    body = json.loads(path.read_text(encoding="utf-8"))
    # Other decisions in a tree and other neighbours may prove the same: they are no claims.
    ways = [at for at in numbers_in(body) if at[0] not in ("proof", "witness")]
    assert len(ways) >= 25
    forged = tmp_path / "forged.json"
    unnoticed = []
    for at in ways:
        inner = changed = json.loads(json.dumps(body))
        for key in at[:-1]:
            inner = inner[key]
        old = inner[at[-1]]
        if isinstance(old, bool):
            inner[at[-1]] = not old
        elif isinstance(old, int):
            inner[at[-1]] = old + 1
        else:
            inner[at[-1]] = old * (1.0 + 1e-6) + (1e-6 if abs(old) < 1e-6 else 0.0)
        forged.write_text(json_text(signed(changed)), encoding="utf-8")
        if main([str(forged), str(data)]) == 0:
            unnoticed.append((at, old))
    assert not unnoticed


def test_a_bound_that_is_a_hair_above_what_is_proved_is_refused(files, tmp_path, capsys) -> None:
    for name in ("squared", "huber", "multinomial", "squared, tree", "graph", "graph, tree"):
        path, data, *_ = files[name]
        body = json.loads(path.read_text(encoding="utf-8"))
        share = 1e-7 if "graph" in name else 1e-11
        body["bound"] += share * max(abs(body["bound"]), 1.0)
        gap = body["upper"] - body["bound"]
        body["gap"] = math.nextafter(gap, math.inf) if gap > 0.0 else 0.0
        forged = tmp_path / "forged.json"
        forged.write_text(json_text(signed(body)), encoding="utf-8")
        assert main([str(forged), str(data)]) == 1
        # The gap was made to fit; what is relative to it was not.
        said = capsys.readouterr().out
        assert any(f"line '{line}' says" in said for line in ("bound", "relative gap")), name


@pytest.mark.parametrize("claim", ["globally optimal", "zero up to rounding", "none"])
def test_another_claim_is_refused(files, claim: str, tmp_path, capsys) -> None:
    path, data, certificate, _ = files["no ridge"]
    assert certificate.claim.value == "within gap"
    body = json.loads(path.read_text(encoding="utf-8"))
    (tmp_path / "forged.json").write_text(
        json_text(signed({**body, "claim": claim})), encoding="utf-8"
    )
    assert main([str(tmp_path / "forged.json"), str(data)]) == 1
    assert "line 'claim' says" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_a_tree_with_a_part_missing_is_refused(files, name: str, tmp_path) -> None:
    path, data, *_ = files[name]
    body = json.loads(path.read_text(encoding="utf-8"))
    nodes = body["proof"]["tree"]["nodes"]
    branches = [i for i, node in enumerate(nodes) if "branch" in node]
    assert branches
    for number in branches:
        for side in (1, 2):
            for child in (-1, len(nodes), nodes[number]["branch"][3 - side]):
                changed = json.loads(json.dumps(body))
                changed["proof"]["tree"]["nodes"][number]["branch"][side] = child
                (tmp_path / "forged.json").write_text(json_text(signed(changed)), encoding="utf-8")
                assert main([str(tmp_path / "forged.json"), str(data)]) == 1


@pytest.mark.parametrize("name", ["logistic", "graph, tree"])
def test_a_tree_that_decides_more_than_its_bounds_do_is_refused(files, name, tmp_path) -> None:
    path, data, certificate, _ = files[name]
    body = json.loads(path.read_text(encoding="utf-8"))
    if name == "logistic":
        best = certificate.support
    else:  # edges have the numbers of pairs i < j
        best = [list(itertools.combinations(range(P), 2)).index(e) for e in certificate.pairs]
    for node in body["proof"]["tree"]["nodes"]:
        if "duals" in node and "branch" in node:
            node["out"] = [j for j in best if j != node["branch"][0]][:1]
            break
    (tmp_path / "forged.json").write_text(json_text(signed(body)), encoding="utf-8")
    assert main([str(tmp_path / "forged.json"), str(data)]) == 1


def test_a_dual_matrix_of_a_search_that_is_no_longer_one_is_refused(files, tmp_path) -> None:
    path, data, *_ = files["graph, tree"]
    body = json.loads(path.read_text(encoding="utf-8"))
    for forge in (lambda U, mu: (U, [-1.0]), lambda U, mu: (U[1:], mu), lambda U, mu: (U, [1e3])):
        changed = json.loads(json.dumps(body))
        for node in changed["proof"]["tree"]["nodes"]:
            if "duals" in node:
                node["duals"] = forge(*node["duals"])
        (tmp_path / "forged.json").write_text(json_text(signed(changed)), encoding="utf-8")
        assert main([str(tmp_path / "forged.json"), str(data)]) == 1


def test_other_data_other_names_and_broken_files_are_refused(files, tmp_path, capsys) -> None:
    path, data, *_ = files["squared"]
    other = A.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9.0)
    np.savez(tmp_path / "other.npz", A=other, b=B)
    assert main([str(path), str(tmp_path / "other.npz")]) == 2
    assert "not checked: none of your arrays" in capsys.readouterr().out
    np.savez(tmp_path / "nan.npz", A=np.where(A[0, 0] == A, np.nan, A), b=B)
    assert main([str(path), str(tmp_path / "nan.npz")]) == 2
    names = [f"feature {j}" for j in range(P)]
    np.savez(tmp_path / "names.npz", A=A, b=B, names=names)
    assert main([str(path), str(tmp_path / "names.npz")]) == 1
    assert "line 'names' calls" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    for broken in (
        text.replace('"k": 2', '"k": 2, "k": 2'),
        text.replace('"claim": ', '"claim": NaN, "was": '),
        text.replace('"version": 2', '"version": 2.0'),
        text[: len(text) // 2],
        "[]",
    ):
        assert broken != text
        (tmp_path / "broken.json").write_text(broken, encoding="utf-8")
        assert main([str(tmp_path / "broken.json"), str(data)]) == 1


def test_a_bound_of_exactly_zero_holds(tmp_path) -> None:
    for loss, target, columns in (
        (sm.logistic_loss, SIGNS, 0),
        (sm.multinomial_loss, CLASSES, 3),
        (sm.hinge_loss, SIGNS, 0),
    ):
        problem, arrays = declared(loss, target, columns=columns, ridge=0.0)
        certificate = certify(problem.form, np.zeros(problem.form.shape))
        assert certificate.bound == 0.0
        np.savez(tmp_path / "d.npz", **arrays)
        assert main([str(certificate.save(tmp_path / "c.json")), str(tmp_path / "d.npz")]) == 0


def test_what_cannot_be_checked_is_not_passed(files, tmp_path, capsys) -> None:
    def status(problem: sm.Problem, change: Callable[[dict], None] = lambda body: None) -> int:
        problem.solve()
        body = problem.certify(time_limit=1.0).to_dict()
        change(body)
        (tmp_path / "c.json").write_text(json_text(signed(body)), encoding="utf-8")
        np.savez(tmp_path / "d.npz", A=A, b=B)
        return main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")])

    w = sm.Variable(P)
    own = sm.custom_loss(lambda u: 0.5 * np.sum((u - B) ** 2), lambda u: u - B, of=A @ w)
    custom = sm.minimize(own + sm.ridge(w, 0.1))
    assert status(sm.Problem(custom, sm.card(w) <= 2)) == 2
    assert "not checked: the loss" in capsys.readouterr().out
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1))
    ball = sm.Problem(goal, [sm.card(w) <= 2, sm.norm(w, 2) <= 5.0])
    assert status(ball, lambda b: b["problem"]["numbers"].pop("norms")) == 2
    assert status(sm.Problem(goal, sm.card(w) <= 2), lambda b: b["problem"].pop("numbers")) == 2
    path, data, *_ = files["logistic"]
    assert main([str(path), str(data), "--exact"]) == 2
    assert main([str(tmp_path / "none.json"), str(data)]) == 2
    assert main([str(path), str(tmp_path / "none.npz")]) == 2


def test_bounds_hold_in_rationals_by_brute_force(tmp_path, capsys) -> None:
    rng = np.random.default_rng(8)
    for trial in range(4):
        M = rng.standard_normal((14, 16))
        y = M[:, 1] - M[:, 2] + 0.5 * rng.standard_normal(14)
        ridge = [0.0, 1e-3][trial % 2]
        problem, arrays = declared(sm.squared_loss, y, matrix=M, ridge=ridge)
        problem.solve()
        point = problem._solved()[0].x
        certificate = problem.prove() if trial > 1 else certify(problem.form, point)
        assert trial or certificate.witness.bounds is not None  # there is no ridge
        path = certificate.save(tmp_path / "c.json")
        np.savez(tmp_path / "d.npz", **arrays)
        assert main([str(path), str(tmp_path / "d.npz"), "--exact"]) == 0, capsys.readouterr().out
        best = min(_least(M, y, ridge, s) for s in itertools.combinations(range(16), 2))
        assert Fraction(certificate.bound) <= best <= Fraction(certificate.upper)
        for raised in (certificate.bound, certificate.upper):
            forged = json.loads(path.read_text(encoding="utf-8"))
            forged["bound"] = float(raised) + 1e-9
            (tmp_path / "f.json").write_text(json_text(signed(forged)), encoding="utf-8")
            assert main([str(tmp_path / "f.json"), str(tmp_path / "d.npz"), "--exact"]) == 1


def _least(M: np.ndarray, y: np.ndarray, ridge: float, support: tuple[int, ...]) -> Fraction:
    """Return the least objective on two columns: mean of squares over 2, by Cramer's rule."""
    weight = Fraction(1.0 / y.size)
    a, b = ([Fraction(v) for v in M[:, j]] for j in support)
    t = [Fraction(v) for v in y]

    def product(one: list[Fraction], two: list[Fraction]) -> Fraction:
        return weight * sum(p * q for p, q in zip(one, two, strict=True))

    aa, ab, bb = product(a, a) + Fraction(ridge), product(a, b), product(b, b) + Fraction(ridge)
    at, bt = product(a, t), product(b, t)
    gain = (at * at * bb - 2 * at * bt * ab + bt * bt * aa) / (aa * bb - ab * ab)
    return (product(t, t) - gain) / 2


def test_a_run_loads_nothing_else(files) -> None:
    path, data, *_ = files["squared, tree"]
    code = (
        "import sys; from sparsemodel.checker.__main__ import main; "
        f"status = main([{str(path)!r}, {str(data)!r}]); "
        "print(status, sorted(m for m in sys.modules if m.startswith(('sparsemodel', 'numba', "
        "'cvxpy')) and not m.startswith('sparsemodel.checker')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 ['sparsemodel', 'sparsemodel._version']"
