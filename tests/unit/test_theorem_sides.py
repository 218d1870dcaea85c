"""Theorems take the constants of their own level, each from the side that makes them hardest."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sparsemodel.interfaces.self_description import Constants, Setting, levels
from sparsemodel.numerics import expansion
from sparsemodel_backends.theorems import arht, diht, grahtp, nhtp, tight

UNKNOWN = (0.0, math.inf)
THEOREM_02A, THEOREM_05A, THEOREM_08 = grahtp.theorems()[:3]
THEOREM_02B, THEOREM_05B = grahtp.fast_theorems()
THEOREM_06 = tight.iht_theorem()
THEOREM_10, COROLLARY_15 = tight.svrg_theorems()


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
        penalised=False,
        free=0,
        observations=50,
        weight=5.0,
        row_smoothness=1.0,
        norm=7.0,
        coefficients=(1.0, 3.0),
        slopes=(1.0, 0.03),
        stationary=True,
        target=(1.0, 0.03),
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
    for theorem, status, limit in ((THEOREM_02A, a, 1.15), (THEOREM_02B, b, 1.26)):
        told = theorem.on(found)
        assert told.status == status
        if status == "holds":
            rho = math.sqrt(1.0 - 1.0 / M[1] ** 2)
            step, rate, *_ = told.numbers.values()
            assert step == pytest.approx(1.0 / M[1] ** 2, rel=1e-12)
            assert rate == pytest.approx(rho / (1.0 - rho) if limit < 1.2 else 1.62 * rho)


def test_grahtp_5_is_about_level_2k():
    told = THEOREM_05A.on(setting(20, at={40: ((1.01, 1.03), (1.0, 1.005))}))
    assert told.status == "holds"
    kbar, step, rate, error, _ = told.numbers.values()
    assert kbar == 1.0  # 20 / (2 + 16 * 1.03^2) = 1.05
    assert step == pytest.approx(0.5 / 1.03)
    assert rate == pytest.approx(1.0 - 0.5 / 1.03 / 4.0)
    assert error == pytest.approx(2.83 * math.sqrt(20))
    told = THEOREM_05A.on(setting(20, at={40: ((1.01, 1.2), (1.0, 1.005))}))
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("open", 0.0)


def test_grahtp_5b_takes_level_3k_for_certain_and_2k_plus_1_for_perhaps():
    """M/m = 1.25: rho = 0.6, and kbar < 20 * 0.16 / 0.6 = 5.3."""
    told = THEOREM_05B.on(setting(20, at={60: ((1.2, 1.25), (1.0, 1.01))}))
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("holds", 5.0)
    share = 0.25
    gamma = math.sqrt(1.0 + (share + math.sqrt((4.0 + share) * share)) / 2.0)
    step, rate = 1.0 / 1.25**2, 0.6 * gamma
    error = gamma * step * math.sqrt(45) / (1.0 - rate)
    assert list(told.numbers.values())[1:] == pytest.approx([step, rate, error, 2.0 * error])
    flat = {41: ((9.0, 9.5), (1.0, 1.01)), 60: ((9.0, 9.5), (0.0, 1.01))}
    assert THEOREM_05B.on(setting(20, at=flat)).status == "fails"
    flat[41] = ((1.0, 9.5), (1.0, 1.01))
    assert THEOREM_05B.on(setting(20, at=flat)).status == "open"
    room = THEOREM_05B.on(setting(20, p=44, at={44: ((1.0, 1.0), (1.0, 1.0))}))
    assert room.numbers["targets up to this sparsity"] == 3.0  # 2k + kbar < p


@pytest.mark.parametrize(("k", "kbar"), [(16, 0), (17, 1), (33, 1), (34, 2)])
def test_grahtp_8(k, kbar):
    told = THEOREM_08.on(setting(k, at={2 * k: ((4.0, 4.0), (4.0, 4.0))}))
    assert told.numbers["targets up to this sparsity"] == kbar  # 1 + 16
    assert told.status == ("holds" if kbar else "fails")
    if kbar:
        assert told.numbers["step eta"] == 0.125
        assert told.numbers["smallest coefficient per root of the excess"] == pytest.approx(1.15)


@pytest.mark.parametrize(("k", "kbar"), [(4, 0), (5, 1), (9, 1), (10, 2)])
def test_grahtp_10_2(k, kbar):
    """``k >= (1 + 4 (M/m)^2) kbar``, and 2.3 / sqrt m."""
    told = grahtp.THEOREM_10[1].on(setting(k, at={2 * k: ((4.0, 4.0), (4.0, 4.0))}))
    assert told.status == ("holds" if kbar else "fails")
    assert told.numbers["targets up to this sparsity"] == kbar
    if kbar:
        assert list(told.numbers.values()) == pytest.approx([kbar, 1.15])
    wide = setting(k, at={2 * k: ((4.0, 9.0), (4.0, 4.0))})
    assert grahtp.THEOREM_10[1].on(wide).status == ("open" if kbar else "fails")


def test_grahtp_10_takes_m_of_level_2k():
    """4.59 sqrt(4) 0.03 / m = 0.2754 / m, against a smallest coefficient of 1."""
    for m, status in (((0.28, 0.5), "holds"), ((0.27, 0.28), "open"), ((0.1, 0.27), "fails")):
        told = grahtp.THEOREM_10[0].on(setting(4, at={8: (UNKNOWN, m)}))
        assert told.status == status
        if status == "holds":
            assert list(told.numbers.values()) == pytest.approx([0.2754 / 0.28])
    held = setting(4, at={8: (UNKNOWN, (0.28, 0.5))})
    assert grahtp.THEOREM_10[0].on(replace(held, target=(math.inf, 0.0))).status == "fails"
    free = replace(held, free=1)
    assert grahtp.THEOREM_10[0].on(free).status == "holds"
    assert grahtp.THEOREM_10[0].on(replace(free, stationary=False)).status == "open"


def test_ompr():
    """Theorem 4.2 with kappa = 1.5: k / 2.25 targets, and below 4 k / 2.25 without noise."""
    found = setting(
        9, at={2: ((1.4, 1.5), UNKNOWN), 18: (UNKNOWN, (1.0, 1.1)), 9: (UNKNOWN, (1.0, 1.1))}
    )
    told = arht.THEOREM_4_2.on(found)
    assert (told.status, list(told.numbers.values())) == ("holds", [4.0, 9.0, 8.0])  # B at q = 1.5
    far = {2: ((3.0, 5.0), UNKNOWN), 18: (UNKNOWN, (1.0, 1.1)), 9: (UNKNOWN, (1.0, 1.1))}
    told = arht.THEOREM_4_2.on(setting(9, at=far))
    assert told.status == "open"
    assert list(told.numbers.values()) == pytest.approx([0.0, 1.0, 24.0])  # 4 * 9 / 25; q = 5/3
    far[2] = ((9.0, 9.5), UNKNOWN)
    assert arht.THEOREM_4_2.on(setting(9, at=far)).status == "fails"


def test_ompr_and_restricted_isometry():
    """Corollary 4.5 and Table 1."""
    table = {1: 0.33, 2: 0.47, 3: 0.55, 30: 0.83}
    for ratio, limit in table.items():
        assert arht.ompr_isometry(ratio) == pytest.approx(limit, abs=0.01)
    for delta, status, most in ((0.33, "holds", 6), (0.34, "holds", 5), (0.46, "holds", 3)):
        told = arht.COROLLARY_4_5.on(setting(6, at={12: isometry(0.0, delta)}))
        assert (told.status, told.numbers["targets up to this sparsity"]) == (status, most)
    assert arht.COROLLARY_4_5.on(setting(6, at={6: isometry(0.7, 0.8)})).status == "fails"
    assert arht.COROLLARY_4_5.on(setting(6, at={6: isometry(0.6, 0.8)})).status == "open"


def test_arht_takes_m_of_level_k_plus_the_target():
    two = ((1.3, 1.35), UNKNOWN)
    own, wide = (UNKNOWN, (1.2, 1.3)), (UNKNOWN, (0.6, 0.7))
    told = arht.THEOREM_3_1.on(setting(20, at={2: two, 20: own, 40: wide}))
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("open", 0.0)
    told = arht.THEOREM_3_1.on(setting(20, at={2: two, 20: own, 40: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "holds"  # 12 * 1.35 / 1.2 + 6 = 19.5
    unit = 1.0 / 1.2  # Corollaries 3.11 and 3.12
    assert list(told.numbers.values()) == pytest.approx([1.0, 2.0 * unit, unit])
    told = arht.THEOREM_3_1.on(setting(19, at={2: two, 19: own, 38: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "open"  # with 1.3 / 1.3 it is 18
    told = arht.THEOREM_3_1.on(setting(17, at={2: two, 17: own, 34: (UNKNOWN, (1.2, 1.3))}))
    assert told.status == "fails"


def test_nhtp_is_about_level_2k():
    eight, _, nine, _ = nhtp.theorems(nhtp.Chosen())
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
    for theorem in nhtp.theorems(nhtp.Chosen())[::2]:
        assert theorem.on(found).numbers["largest step eta"] == pytest.approx(0.25)


def test_nhtp_29_asks_for_a_stationary_point():
    """x_(k) / eta with eta = 1 / 0.03, the largest that it is stationary for."""
    theorem, found = nhtp.theorems(nhtp.Chosen())[1], setting(3)
    told = theorem.on(found)
    assert (told.status, *told.numbers.values()) == ("holds", pytest.approx(1.0 / 0.03), 0.03)
    assert theorem.on(replace(found, stationary=False)).status == "fails"
    fewer = replace(found, coefficients=(math.inf, 3.0))  # x_(k) = 0: a global minimiser, or not
    assert theorem.on(fewer).status == "fails"
    assert theorem.on(replace(found, coefficients=(0.0, 3.0))).status == "fails"
    told = theorem.on(replace(fewer, slopes=(1.0, 0.0)))
    assert (told.status, *told.numbers.values()) == ("holds", 0.0)


def test_nhtp_corollary_10_has_the_constants_of_remark_7():
    """delta = 1/3 and w = 1/2: sigma = 2/7, gamma = 2/3, eta = 1/64."""
    theorem = nhtp.theorems(nhtp.Chosen())[3]
    third = 1.0 / 3.0
    for M, m in (((1.2, 1.0 + third), (0.7, 0.8)), ((1.1, 1.2), (1.0 - third, 0.9))):
        told = theorem.on(setting(3, at={6: (M, m)}))
        assert told.status == "holds"
        assert list(told.numbers.values()) == pytest.approx([0.25, 2 / 7, 2 / 3, 1 / 64])
    assert theorem.on(setting(3, at={6: ((1.2, 2.1), (0.7, 0.8))})).status == "open"
    assert theorem.on(setting(3, at={6: ((1.2, 1.3), (0.0, 0.8))})).status == "open"
    assert theorem.on(setting(3, at={6: ((2.0, 2.1), (0.7, 0.8))})).status == "fails"
    assert theorem.on(setting(3, at={6: ((1.2, 1.3), (0.0, 0.0))})).status == "fails"
    told = theorem.on(replace(setting(3, at={6: isometry(0.0, 0.1)}), quadratic=False))
    assert told.status == "fails"


def test_diht_9_compares_the_two_entries_beside_the_cut():
    found = setting(4)
    told = diht.THEOREM_09.on(found)
    assert (told.status, *told.numbers.values()) == ("holds", pytest.approx(1.0 - 0.03 / 0.3))
    assert diht.THEOREM_09.on(replace(found, slopes=(1.0, 0.3))).status == "open"  # a tie
    assert diht.THEOREM_09.on(replace(found, stationary=False)).status == "open"
    assert diht.THEOREM_09.on(replace(found, coefficients=(math.inf, 3.0))).status == "open"
    assert diht.THEOREM_09.on(replace(found, ridge=0.0)).status == "fails"
    assert diht.THEOREM_09.on(replace(found, free=1)).status == "fails"
    assert diht.THEOREM_09.on(replace(found, loss_curvature=(0.0, math.inf))).status == "fails"


def test_diht_13_without_strong_convexity_is_lemma_24():
    found = replace(setting(4), loss_curvature=(0.0, 0.25))
    told = diht.THEOREM_13.on(found)
    assert (told.status, *told.numbers.values()) == ("holds", pytest.approx(4 / 0.3))
    assert diht.THEOREM_13.on(replace(found, stationary=False)).status == "open"
    assert diht.THEOREM_13.on(replace(found, ridge=0.0)).status == "fails"
    assert diht.THEOREM_13.on(replace(found, free=2)).status == "fails"


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
    found = replace(setting(4), dual=1.5, dual_bounds=(1.0, 2.0))
    _, _, slow, fast = diht.theorems("decreasing")
    for theorem in (slow, fast):
        told = theorem.on(found)
        assert told.status == "holds"
        assert told.numbers["epsilon"] == pytest.approx(1.0 - 0.03 / 0.3)
        assert theorem.on(replace(found, stationary=False)).status == "open"
        assert theorem.on(replace(found, coefficients=(0.09, 3.0))).status == "open"
        assert theorem.on(replace(found, weight=0.0)).status == "fails"
        assert theorem.on(replace(found, ridge=0.0)).status == "fails"
        assert theorem.on(replace(found, free=1)).status == "fails"
        # Fewer than k nonzeros: the k-th largest is zero.
        assert theorem.on(replace(found, coefficients=(math.inf, 3.0))).status == "open"
    # Lemma 31: (a) with the support of the solution, (b) before
    mu, right = 0.5 / 50, 49.0 / (0.06 * 2500)
    ell = 2.0 / 50 + right * (1.0 + 4.0 * 7.0 * 1.5 / (0.06 * 50 * 0.9))
    assert told.numbers["step eta"] == pytest.approx(mu / ell**2)
    assert told.numbers["contraction an iteration"] == pytest.approx(1.0 - (mu / ell) ** 2)
    # Bounded variables and slopes, for Theorem 15
    for bounds in ((math.inf, math.inf), (1.0, math.inf)):
        assert slow.on(replace(found, dual_bounds=bounds)).status == "fails"
        assert fast.on(replace(found, dual_bounds=bounds)).status == "holds"
    assert fast.on(replace(found, dual=math.inf)).status == "open"
    # Constant steps: that of the right support is too long by far, the theorem's is not.
    assert diht.theorems("constant")[3].on(found).status == "fails"
    eta = mu / ell**2
    for times, status in ((1.0, "holds"), (1.9, "holds"), (2.1, "fails")):
        told = diht.theorems("constant", times * eta)[3].on(found)
        assert told.status == status
        if status == "holds":
            rate = 1.0 - 2.0 * times * eta * mu + (times * eta * ell) ** 2
            assert told.numbers["contraction an iteration"] == pytest.approx(rate)


def isometry(low, high):
    return (1.0 + low, 1.0 + high), (1.0 - high, 1.0 - low)


@pytest.mark.parametrize("theorem", [THEOREM_06, tight.THEOREM_07])
def test_tight_6_and_7_take_delta_of_level_2k_or_3k_and_the_target(theorem):
    six = theorem is THEOREM_06
    wide, own, k = (18, 13, 6) if six else (24, 18, 6)
    nu = expansion(200, k, 1)
    limit = 1.0 / math.sqrt(8.0 * nu) if six else tight._cosamp(nu)
    good, bad = isometry(0.0, 0.99 * limit), isometry(1.01 * limit, 0.9)
    between = isometry(0.0, 1.01 * limit)
    below = {s: isometry(0.0, 0.0) for s in levels(k, 200) if s < own}
    assert theorem.on(setting(k, data=below | {own: good, wide: good})).status == "holds"
    assert theorem.on(setting(k, data=below | {own: good, wide: between})).status == "open"
    assert theorem.on(setting(k, data=below | {own: bad, wide: bad})).status == "fails"
    ridged = replace(setting(k, data=below | {own: good, wide: good}), penalised=True)
    assert theorem.on(ridged).status == "fails"


@pytest.mark.parametrize(
    "theorem",
    [
        THEOREM_02B,
        THEOREM_05B,
        THEOREM_06,
        tight.THEOREM_07,
        THEOREM_10,
        COROLLARY_15,
        *(t for t in nhtp.theorems(nhtp.Chosen(1e-4, 0.25)) if "(29)" not in t.source),
    ],
    ids=lambda theorem: theorem.source,
)
def test_steps_in_free_coordinates_have_no_theorem(theorem):
    k, isometric = 600, ((1.0, 1.0), (1.0, 1.0))
    every = dict.fromkeys(levels(k, 9000), isometric)
    best = setting(k, 9000, every, every)
    assert theorem.on(best).status == "holds"
    assert theorem.on(replace(best, free=1)).status == "fails"


def test_tight_10_takes_m_of_level_k_plus_the_target():
    own = (UNKNOWN, (1.0, 1.0))
    told = THEOREM_10.on(setting(30, at={30: own, 60: (UNKNOWN, (0.9, 1.0))}))
    # 4 / 3.1 = 1.2903 lies between nu(30, 1) = 1.2 and nu(30, 2) = 1.2937
    assert (told.status, told.numbers["targets up to this sparsity"]) == ("holds", 1.0)
    assert told.numbers["alpha"] == 0.9
    told = THEOREM_10.on(setting(30, at={30: own, 60: (UNKNOWN, (0.5, 0.6))}))
    assert told.status == "open"


def test_tight_15_has_the_parameters_of_4_5():
    """c = L/alpha = 2: k = 8 * 2 * 15 K = 240 K, m = 4 * 15 and 2/3 a stage."""
    for k, K in ((239, 0), (241, 1), (481, 2)):
        at = {k: (UNKNOWN, (0.5, 0.5)), 2 * k: (UNKNOWN, (0.5, 0.5))}
        told = COROLLARY_15.on(setting(k, p=10**4, at=at))
        assert told.numbers["targets up to this sparsity"] == K
        assert told.status == ("holds" if K else "fails")
        if K:
            assert told.numbers["step eta"] == 0.125
            assert told.numbers["inner steps m"] in (60, 61)
            rate = told.numbers["contraction of the objective a stage"]
            assert rate == pytest.approx(2.0 / 3.0, abs=1e-2)
            assert rate <= 2.0 / 3.0
            distance = told.numbers["contraction of the distance a stage"]
            assert distance == pytest.approx(math.sqrt(2.0 / 3.0), abs=1e-2)
    at = {30: (UNKNOWN, (1.0, 1.0)), 60: (UNKNOWN, (0.0, 1.0))}
    assert COROLLARY_15.on(setting(30, at=at)).status == "fails"  # 56 K with c = 1
    at = {60: (UNKNOWN, (1.0, 1.0)), 120: (UNKNOWN, (0.0, 1.0))}
    assert COROLLARY_15.on(setting(60, at=at)).status == "open"


def test_the_expansion_near_the_number_of_coordinates():
    """``rho = min(K, p - k) / (k - K + min(K, p - k))``."""
    rho = 2.0 / 7.0
    assert expansion(12, 10, 5) == pytest.approx(1.0 + 0.5 * (rho + math.sqrt(rho**2 + 4 * rho)))
    assert expansion(10, 10, 5) == 1.0
    assert tight._cosamp(1.0) == pytest.approx(tight._cosamp(1.0 + 1e-7), rel=1e-6)
