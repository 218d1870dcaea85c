"""Theorems take the constants of their own level, each from the side that makes them hardest."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sparsemodel.interfaces.self_description import Constants, Setting, levels
from sparsemodel_backends.theorems import arht, diht, grahtp, nhtp, tight

UNKNOWN = (0.0, math.inf)


def setting(k, p=200, at=None, data=None):
    """Nothing is known but the constants that are given: level, (M at least, at most), (m ...)."""

    def constants(known):
        out = {s: Constants(s, UNKNOWN, UNKNOWN) for s in levels(k, p)}
        return out | {s: Constants(s, *pairs) for s, pairs in (known or {}).items()}

    return Setting(
        k=k,
        p=p,
        constants=constants(at),
        data=constants(data),
        smooth=True,
        quadratic=True,
        loss_curvature=(0.5, 2.0),
        ridge=0.3,
        free=0,
        observations=50,
        weight=5.0,
        row_smoothness=1.0,
        norm=7.0,
        coefficients=(1.0, 3.0),
        slopes=(1.0, 0.03),
        stationary=True,
    )


@pytest.mark.parametrize(
    ("M", "a", "b"),
    [
        ((1.02, 1.1), "holds", "holds"),
        ((1.02, 1.2), "open", "holds"),
        ((1.02, 1.3), "open", "open"),
        ((1.2, 1.3), "fails", "open"),
        ((1.3, 1.4), "fails", "fails"),
    ],
)
def test_grahtp_2_is_about_level_3k(M, a, b):
    found = setting(20, at={60: (M, (1.0, 1.01))})
    for theorem, status, limit in ((grahtp.THEOREM_2A, a, 1.15), (grahtp.THEOREM_2B, b, 1.26)):
        told = theorem.on(found)
        assert told.status == status
        if status == "holds":
            rho = math.sqrt(1.0 - 1.0 / M[1] ** 2)
            step, rate = told.numbers.values()
            assert step == pytest.approx(1.0 / M[1] ** 2, rel=1e-12)
            assert rate == pytest.approx(rho / (1.0 - rho) if limit < 1.2 else 1.62 * rho)


def test_grahtp_5_is_about_level_2k():
    told = grahtp.THEOREM_5A.on(setting(20, at={40: ((1.01, 1.03), (1.0, 1.005))}))
    assert told.status == "holds"
    kbar, step, rate, error = told.numbers.values()
    assert kbar == 1.0  # 20 / (2 + 16 * 1.03^2) = 1.05
    assert step == pytest.approx(0.5 / 1.03)
    assert rate == pytest.approx(1.0 - 0.5 / 1.03 / 4.0)
    assert error == pytest.approx(2.83 * math.sqrt(20))
    told = grahtp.THEOREM_5A.on(setting(20, at={40: ((1.01, 1.2), (1.0, 1.005))}))
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("open", 0.0)


def test_arht_takes_m_of_level_k_plus_the_target():
    two = ((1.3, 1.35), UNKNOWN)
    own, wide = (UNKNOWN, (1.2, 1.3)), (UNKNOWN, (0.6, 0.7))
    told = arht.THEOREM_3_1.on(setting(20, at={2: two, 20: own, 40: wide}))
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("open", 0.0)
    told = arht.THEOREM_3_1.on(setting(20, at={2: two, 20: own, 40: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "holds"  # 12 * 1.35 / 1.2 + 6 = 19.5
    told = arht.THEOREM_3_1.on(setting(19, at={2: two, 19: own, 38: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "open"  # with 1.3 / 1.3 it is 18
    told = arht.THEOREM_3_1.on(setting(17, at={2: two, 17: own, 34: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "fails"


def test_nhtp_is_about_level_2k():
    eight, nine = nhtp.theorems(5e-5, 0.5)
    M, m = (0.2, 0.4), (0.05, 0.08)
    found = setting(3, at={6: (M, m), 3: ((0.1, 0.15), (0.1, 0.15))})

    def step(gamma):
        alpha = min((1.0 - 1e-4) / (M[1] / gamma - 5e-5), 1.0)
        return min(gamma * alpha * 0.5 / M[1] ** 2, alpha * 0.5, 1.0 / (4.0 * M[1]))

    assert eight.on(found).numbers["largest step eta"] == pytest.approx(step(2.0 * M[0]))
    assert nine.on(found).numbers["largest step eta"] == pytest.approx(step(m[0]))
    assert nine.on(found).numbers["gamma"] == m[0]
    flat = setting(3, at={6: ((4.0, 5.0), (3.0, 3.0))})
    assert nine.on(flat).numbers["largest step eta"] == pytest.approx(0.004, rel=1e-3)
    assert nine.on(setting(3, at={6: (M, (0.0, 0.08))})).status == "open"
    assert nine.on(setting(3, at={6: (M, (0.0, 0.0))})).status == "fails"


def test_the_step_of_nhtp_is_at_most_a_quarter_of_the_smoothness():
    """(24) with M = gamma = 1, where the other two bounds are a half."""
    found = setting(3, at={6: ((1.0, 1.0), (1.0, 1.0))})
    for theorem in nhtp.theorems(5e-5, 0.5):
        assert theorem.on(found).numbers["largest step eta"] == pytest.approx(0.25)


def test_diht_13_takes_the_constants_of_the_losses():
    M, m = (2.0, 2.5), (0.9, 1.5)  # 0.3 (2.5 * 3 - 2) = 1.65 is at most 2 * 0.9
    found = setting(4, data={4: (M, m)})
    told = diht.THEOREM_13.on(found)
    assert told.status == "holds"
    gap = 4 / 0.3 * (2.0 + 2.5 / (0.9 + 0.3)) ** 2
    assert told.numbers["gap at most"] == pytest.approx(gap)
    assert diht.THEOREM_13.on(setting(4, data={4: (M, (0.5, 0.9))})).status == "open"
    assert diht.THEOREM_13.on(setting(4, data={4: (M, (0.5, 0.59))})).status == "fails"
    # 0.45 M > 1 for the larger M alone
    told = diht.THEOREM_13.on(replace(found, coefficients=(0.45, 3.0)))
    assert (told.status, told.numbers) == ("open", {})
    assert diht.THEOREM_13.on(replace(found, coefficients=(0.3, 3.0))).status == "fails"


def test_diht_15_and_17():
    found = setting(4)
    mu, ell = 0.5 / 50, 2.0 / 50 + 49.0 / (0.06 * 2500)
    for theorem in (diht.THEOREM_15, diht.THEOREM_17):
        told = theorem.on(found)
        assert told.status == "holds"
        assert told.numbers["epsilon"] == pytest.approx(1.0 - 0.03 / 0.3)
        assert theorem.on(replace(found, stationary=False)).status == "open"
        assert theorem.on(replace(found, coefficients=(0.09, 3.0))).status == "open"
        assert theorem.on(replace(found, weight=0.0)).status == "fails"
        assert theorem.on(replace(found, ridge=0.0)).status == "fails"
        assert theorem.on(replace(found, free=1)).status == "fails"
    assert told.numbers["step eta"] == pytest.approx(mu / ell**2)
    assert told.numbers["contraction an iteration"] == pytest.approx(1.0 - (mu / ell) ** 2)


def isometry(low, high):
    return (1.0 + low, 1.0 + high), (1.0 - high, 1.0 - low)


@pytest.mark.parametrize("theorem", [tight.THEOREM_06, tight.THEOREM_07])
def test_tight_6_and_7_take_delta_of_level_2k_or_3k_and_the_target(theorem):
    six = theorem is tight.THEOREM_06
    wide, own, k = (18, 13, 6) if six else (24, 18, 6)
    nu = tight.expansion(k, 1, 200)
    limit = 1.0 / math.sqrt(8.0 * nu) if six else tight._cosamp(nu)
    good, bad = isometry(0.0, 0.99 * limit), isometry(1.01 * limit, 0.9)
    between = isometry(0.0, 1.01 * limit)
    below = {s: isometry(0.0, 0.0) for s in levels(k, 200) if s < own}
    assert theorem.on(setting(k, data=below | {own: good, wide: good})).status == "holds"
    assert theorem.on(setting(k, data=below | {own: good, wide: between})).status == "open"
    assert theorem.on(setting(k, data=below | {own: bad, wide: bad})).status == "fails"


def test_tight_10_takes_m_of_level_k_plus_the_target():
    own = (UNKNOWN, (1.0, 1.0))
    told = tight.THEOREM_10.on(setting(30, at={30: own, 60: (UNKNOWN, (0.9, 1.0))}))
    # 4 / 3.1 = 1.2903 lies between nu(30, 1) = 1.2 and nu(30, 2) = 1.2937
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("holds", 1.0)
    assert told.numbers["alpha"] == 0.9
    told = tight.THEOREM_10.on(setting(30, at={30: own, 60: (UNKNOWN, (0.5, 0.6))}))
    assert told.status == "open"


def test_the_expansion_near_the_number_of_coordinates():
    """``rho = min(K, p - k) / (k - K + min(K, p - k))``."""
    rho = 2.0 / 7.0
    assert tight.expansion(10, 5, 12) == pytest.approx(
        1.0 + 0.5 * (rho + math.sqrt(rho**2 + 4 * rho))
    )
    assert tight.expansion(10, 5, 10) == 1.0
    assert tight._cosamp(1.0) == pytest.approx(tight._cosamp(1.0 + 1e-7), rel=1e-6)
