"""Trees of proofs made at random: whatever they hold, they prove nothing above the optimum.

The package and the stand-alone checker evaluate them with code of their own, and have to agree.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.proving.records.replay import checked, tree_bound
from sparsemodel.checker import files
from sparsemodel.checker.proof.problem import build
from sparsemodel.checker.regression import _Parts

UNITS = 7
Records = list[dict[str, Any]]


def squared(rng: np.random.Generator) -> tuple[sm.Problem, dict[str, Any]]:
    A = rng.standard_normal((20, UNITS)) + 1.5 * rng.standard_normal((20, 1))
    y = A[:, 0] - A[:, 3] + 0.6 * A[:, 5] + rng.standard_normal(20)
    w, c = sm.Variable(UNITS, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, y) + sm.ridge(w, 0.02))
    return sm.Problem(goal, sm.card(w) <= 3), {"A": A, "y": y}


def boxed(rng: np.random.Generator) -> tuple[sm.Problem, dict[str, Any]]:
    A = rng.standard_normal((20, UNITS)) + rng.standard_normal((20, 1))
    y = A[:, 0] - A[:, 3] + rng.standard_normal(20)
    w = sm.Variable(UNITS, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, y) + sm.ridge(w, 0.02))
    return sm.Problem(goal, sm.card(w) <= 2, w >= -0.4, w <= 0.7), {"A": A, "y": y}


def logistic(rng: np.random.Generator) -> tuple[sm.Problem, dict[str, Any]]:
    A = rng.standard_normal((25, UNITS)) + rng.standard_normal((25, 1))
    y = (A[:, 0] - A[:, 3] + rng.standard_normal(25) > 0.0).astype(float)
    w = sm.Variable(UNITS, name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 0.02))
    return sm.Problem(goal, sm.card(w) <= 2), {"A": A, "y": y}


class Case:
    """A problem with its proof, whose optimum is known."""

    def __init__(self, declared: Any, seed: int, folder: Any) -> None:
        self.problem, data = declared(np.random.default_rng(seed))
        path = self.problem.prove(gap=1e-9).save(folder / "proof.json")
        np.savez(folder / "data.npz", **data)
        self.body = json.loads(path.read_text(encoding="utf-8"))
        self.tree, self.optimum = self.body["proof"]["tree"], self.body["value"]
        self.stated = build(self.body["problem"], files.Data([str(folder / "data.npz")]), False)

    def bounds(self, nodes: Records) -> tuple[float, float]:
        """Return what the package and the checker say that a tree of these records proves."""
        tree = {**self.tree, "nodes": nodes}
        form = self.problem.form
        return checked(form, form, tree, caution=1.0).bound, _Parts(self.stated, tree).bound()


@pytest.fixture(scope="module", params=[squared, boxed, logistic], ids=lambda f: f.__name__)
def case(request, tmp_path_factory) -> Case:
    return Case(request.param, 2, tmp_path_factory.mktemp("trees"))


def random_tree(case: Case, rng: np.random.Generator) -> Records:
    """Return parts that cover all supports, with points that may be good, bad or missing."""
    nodes: Records = []
    gram = case.tree["gram"]

    def point() -> dict[str, Any]:
        if rng.random() < 0.15:
            return {}
        old = case.tree["nodes"][rng.integers(len(case.tree["nodes"]))]
        moved = case.problem.form.sparsity.free.size == 0  # an intercept has to stay balanced
        size = rng.choice([1.0, 1.0, 0.9, 0.0]) if moved else 1.0
        if gram:
            old = case.tree["nodes"][0]
            x = [size * value for value in old["x"]]
            return {"stage": old["stage"], "at": old["at"], "x": x}
        return {"duals": [[size * value for value in a] for a in old["duals"]]}

    def grow(left: list[int], k: int, depth: int) -> int:
        number = len(nodes)
        nodes.append(record := point())
        left = list(rng.permutation(left))
        if gram and 0 < k <= len(left) and rng.random() < 0.2:
            nodes[number] = {"enumerated": True}
            return number
        if left and rng.random() < 0.6:
            inside = [int(j) for j in left[: rng.integers(k + 2)]]
            out = [int(j) for j in left[len(inside) :][: rng.integers(UNITS)]]
            record |= {"in": inside, "out": out}
            left, k = left[len(inside) + len(out) :], k - len(inside)
        if k < 0 or depth == 0 or rng.random() < 0.2:
            return number
        if not left or rng.random() < 0.3:
            record["next"] = grow(left, k, depth - 1)
        else:
            j, *left = left
            children = [
                -1 if rng.random() < 0.2 or room < 0 else grow(left, room, depth - 1)
                for room in (k - 1, k)
            ]
            record["branch"] = [int(j), *children]
        return number

    grow(list(range(UNITS)), case.problem.form.sparsity.budget, 3)
    return nodes


@pytest.mark.parametrize("many", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_random_trees_prove_nothing_above_the_optimum(case: Case, many: int) -> None:
    rng, found, agreed = np.random.default_rng(many), [], []
    for _ in range(many):
        nodes = random_tree(case, rng)
        ours, checkers = case.bounds(nodes)
        assert max(ours, checkers) <= case.optimum * (1.0 + 1e-9), nodes
        # The checker may prove more: it balances intercepts for a part.
        agreed.append(ours == pytest.approx(checkers, rel=1e-9, abs=1e-9))
        assert agreed[-1] or ours < checkers, nodes
        found.append(ours)
    root = max(case.bounds(changed(case)))
    assert np.mean(agreed) > 0.98
    assert np.mean(np.isfinite(found)) > 0.3
    assert max(found) >= root - 1e-9 * abs(root)  # not everything is lost


def changed(case: Case, **lines: Any) -> Records:
    """Return the first record alone, a leaf, with other lines."""
    first = case.tree["nodes"][0]
    kept = {key: first[key] for key in ("stage", "at", "x", "duals") if key in first}
    return [{**kept, **lines}]


MALFORMED = {
    "next is itself": lambda c: changed(c, next=0),
    "one part twice": lambda c: [*changed(c, branch=[0, 1, 1]), *changed(c)],
    "a part that is not there": lambda c: changed(c, next=1),
    "a negative part": lambda c: [*changed(c, next=-2), *changed(c)],
    "a part counted from the end": lambda c: [*changed(c, next=-1), *changed(c)],
    "three children": lambda c: [*changed(c, branch=[0, 1, -1, -1]), *changed(c)],
    "one child": lambda c: [*changed(c, branch=[0, 1]), *changed(c)],
    "out twice": lambda c: changed(c, out=[1, 1]),
    "in and out": lambda c: changed(c, out=[1], **{"in": [1]}),
    "decided before": lambda c: [*changed(c, out=[1], next=1), *changed(c, **{"in": [1]})],
    "branched before": lambda c: [*changed(c, branch=[1, -1, 1]), *changed(c, branch=[1, -1, -1])],
    "branched where decided": lambda c: changed(c, out=[1], branch=[1, -1, -1]),
    "no unit": lambda c: changed(c, out=[UNITS]),
    "unknown line": lambda c: changed(c, cut=1.0),
    "decided among enumerated": lambda c: [{"enumerated": True, "out": [1]}],
}


@pytest.mark.parametrize("how", MALFORMED)
def test_trees_that_cannot_be_are_refused(case: Case, how: str) -> None:
    nodes, form = MALFORMED[how](case), case.problem.form
    with pytest.raises(sm.CertificateError):
        checked(form, form, {**case.tree, "nodes": nodes})


def test_slopes_beside_a_box_or_without_constraints_are_refused(case: Case) -> None:
    form = case.problem.form
    if not case.tree["gram"]:
        pytest.skip("dual points have the slopes within")
    nodes = changed(case, slopes=[0.0])
    for within in (form, replace(form)):
        with pytest.raises(sm.CertificateError):
            checked(form, within, {**case.tree, "boxed": True, "nodes": nodes})


def test_parts_are_left_where_units_still_fit_and_know_what_was_known(case: Case) -> None:
    form, k = case.problem.form, case.problem.form.sparsity.budget

    def replayed(nodes: Records) -> Any:
        return checked(form, form, {**case.tree, "nodes": nodes})

    for inside, parts in ((k - 1, 2), (k, 1)):
        units = list(range(inside))
        leaves = replayed(changed(case, **{"in": units}, branch=[k, -1, -1])).leaves
        assert [leaf.k for leaf in leaves] == [0, k - inside][-parts:]
    (leaf,) = replayed(changed(case, out=[0])).leaves
    (after,) = replayed([*changed(case, out=[0], next=1), {}]).leaves
    assert after.bound == leaf.bound > -np.inf


def test_a_tree_proves_no_less_than_the_losses_and_its_own_problem(case: Case) -> None:
    form, tree = case.problem.form, {**case.tree, "nodes": [{}]}
    assert tree_bound(form, form, tree).value == 0.0
    whole = tree_bound(form, form, {**case.tree, "nodes": changed(case)})
    assert whole.allowance == 1e-11 * whole.value
    smaller = replace(form, constant=form.constant + 1.0)
    again = tree_bound(form, smaller, {**case.tree, "boxed": False, "nodes": changed(case)})
    assert again.value == whole.value
