"""A proof that was stopped goes on from its certificate."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.dual_bounds.bound import Bound
from sparsemodel.certificates.proving import attempts
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.proving.records.resuming import at_least
from sparsemodel.interfaces import CertificateError, DataError, DataTypeError


def make(seed=0, n=30, p=24, k=5, ridge=1e-2):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p)) @ np.linalg.cholesky(0.4 * np.eye(p) + 0.6).T
    b = a[:, 0] - a[:, 1] + a[:, 2] + 1.5 * rng.standard_normal(n)
    w = sm.Variable(p, name="w")
    goal = sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, ridge))
    return sm.Problem(goal, sm.card(w) <= k)


def stopped_after(problem, nodes, **options):
    """Return the certificate of a proof that is interrupted after so many nodes."""

    def stop(now):
        if now.nodes >= nodes:
            raise KeyboardInterrupt

    return prove(problem.form, problem._outcome.x, progress=stop, **options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nodes", [0, 1, 40])
def test_interrupted_and_resumed_is_as_good_as_never_interrupted(seed, nodes):
    problem = make(seed)
    problem.solve()
    whole = problem.prove(gap=1e-6)
    first = stopped_after(problem, nodes, gap=1e-6)
    second = problem.prove(gap=1e-6, resume=first)
    assert second.claim is whole.claim is Claim.OPTIMAL
    assert second.value == pytest.approx(whole.value, rel=1e-12)
    assert second.relative_gap <= 1e-6
    assert verify(second, problem.form).claim is Claim.OPTIMAL
    # What was closed stays as it was recorded, and is looked at no more.
    before, after = first.proof["tree"]["nodes"], second.proof["tree"]["nodes"]
    assert len(after) >= len(before)
    for old, new in zip(before, after, strict=False):
        assert {key: new[key] for key in old if key != "branch"} == {
            key: value for key, value in old.items() if key != "branch"
        }
        if "branch" in old:  # a side that was not looked at may be by now
            (unit, *sides), (same, *later) = old["branch"], new["branch"]
            assert unit == same
            assert all(one in (-1, two) for one, two in zip(sides, later, strict=True))
    extra = second.proof["summary"]["nodes"] - whole.proof["summary"]["nodes"]
    assert extra <= 8 + 0.2 * whole.proof["summary"]["nodes"]


def test_a_proof_goes_on_from_its_file(tmp_path):
    problem = make(5)
    problem.solve()
    rough = stopped_after(problem, 10, gap=1e-6)
    path = rough.save(tmp_path / "proof.json")
    fresh = make(5)
    fine = fresh.prove(gap=1e-6, resume=path)
    assert fine.claim is Claim.OPTIMAL
    assert fine.bound >= rough.bound
    nothing_left = fresh.prove(gap=1e-6, resume=fine)
    assert nothing_left.proof["summary"]["nodes"] == fine.proof["summary"]["nodes"]
    assert nothing_left.claim is Claim.OPTIMAL
    with pytest.raises(DataError, match="closed its parts at a gap of 1e-06"):
        fresh.prove(gap=1e-8, resume=fine)


def test_resuming_in_small_steps_ends():
    problem = make(1)
    problem.solve()
    certificate = stopped_after(problem, 3, gap=1e-6)
    bounds = [certificate.bound]
    for _ in range(200):
        if certificate.claim is Claim.OPTIMAL:
            break
        done = certificate.proof["summary"]["nodes"]
        certificate = stopped_after(problem, done + 10, gap=1e-6, resume=certificate)
        bounds.append(certificate.bound)
    assert certificate.claim is Claim.OPTIMAL
    assert all(b >= a - 1e-12 * abs(a) for a, b in pairwise(bounds))
    seconds = [moment.seconds for moment in certificate.progress]
    assert seconds == sorted(seconds)


def test_a_better_point_in_the_certificate_is_taken_over():
    problem = make(2)
    good = problem.prove(gap=1e-6)
    problem.solve("iht", start=np.zeros(24), max_iter=0)
    again = problem.prove(gap=1e-6, resume=good)
    assert again.value == pytest.approx(good.value, rel=1e-12)


def test_what_cannot_be_resumed_says_why():
    problem = make(3)
    proof = problem.prove(gap=0.01)
    with pytest.raises(CertificateError, match="another problem"):
        make(4).prove(resume=proof)
    with pytest.raises(CertificateError, match="certify"):
        problem.prove(resume=certify(problem.form, proof.x))
    with pytest.raises(CertificateError, match="without its tree"):
        problem.prove(resume=replace(proof, proof={"summary": {}, "tree": None}))
    with pytest.raises(DataTypeError, match="not int"):
        problem.prove(resume=3)


def test_proofs_of_other_losses_go_on_as_well(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((30, 8)) + rng.standard_normal((30, 1))
    y = np.sign(a[:, 0] - a[:, 1] + rng.standard_normal(30))

    def make_logistic():
        w, c = sm.Variable(8, name="w"), sm.Variable(name="c")
        goal = sm.minimize(sm.logistic_loss(a @ w + c, y) + sm.ridge(w, 1e-3))
        return sm.Problem(goal, sm.card(w) <= 2)

    problem = make_logistic()
    rough = problem.prove(gap=1e-5, time_limit=0.0)
    path = rough.save(tmp_path / "proof.json")
    fresh = make_logistic()
    fine = fresh.prove(gap=1e-5, resume=path)
    whole = make_logistic().prove(gap=1e-5)
    assert fine.value == pytest.approx(whole.value, rel=1e-5)
    assert fine.relative_gap <= 1e-5
    assert verify(fine, fresh.form).claim is fine.claim
    with pytest.raises(CertificateError, match="another problem"):
        make(3).prove(resume=fine)
    with pytest.raises(DataError, match="closed its parts at a gap of 1e-05"):
        fresh.prove(gap=1e-7, resume=fine)


def test_a_tree_that_promises_too_much_is_not_believed():
    problem = make(0)
    problem.solve()
    first = stopped_after(problem, 20, gap=1e-6)
    tree = copy.deepcopy(first.proof["tree"])
    tree["stages"][0]["delta"] = [d + 10.0 for d in tree["stages"][0]["delta"]]
    with pytest.raises(CertificateError, match="curvature"):
        problem.prove(resume=replace(first, proof={"summary": {}, "tree": tree}))
    tree = copy.deepcopy(first.proof["tree"])
    victim = next(i for i, r in enumerate(tree["nodes"]) if "branch" in r)
    del tree["nodes"][victim]["branch"]  # a part is said to be closed: it is open again
    second = problem.prove(gap=1e-6, resume=replace(first, proof={"summary": {}, "tree": tree}))
    assert verify(second, problem.form).claim is Claim.OPTIMAL


@pytest.fixture(scope="module")
def certified():
    return make(0).certify()


@pytest.mark.parametrize(
    ("value", "claimed", "proved", "expected"),
    [
        (1.0 - 2.0**-53, 1.0, 1.0 + 1e-12, 1.0),  # lost in the last digits alone
        (0.5, 1.0, 0.75, 0.75),  # claimed, and not proved
        (0.5, 1.0, 0.25, 0.5),
        (0.5, 1.0, -np.inf, 0.5),
        (2.0, 1.0, 1.0, 2.0),
    ],
)
def test_going_on_loses_no_bound_and_believes_none(certified, value, claimed, proved, expected):
    first = replace(certified, bound=claimed)
    assert at_least(value, first, lambda: Bound(proved, 0.0, "")) == expected
    assert at_least(value, None, lambda: Bound(proved, 0.0, "")) == value


@pytest.mark.parametrize("bounds", [(1.0, 3.0), (3.0, 1.0), (-math.inf, 2.0), (2.0, -math.inf)])
def test_of_two_searches_the_one_that_came_further_is_concluded(bounds):
    def attempt(bound, x, upper):
        incumbent = SimpleNamespace(x=x, upper=upper, take=taken.append)
        return attempts.Attempt(None, SimpleNamespace(bound=bound, incumbent=incumbent))

    taken = []
    first, last = attempt(bounds[0], "a point", 4.0), attempt(bounds[1], "a better one", 4.0)
    found = attempts._ahead(first, last)
    assert found.search.bound == max(bounds)
    assert taken == ([] if found is last else ["a better one"])
