"""The corpus: problems small enough that every backend that can runs on every one of them.

``cases()`` lists them; a case is generated from its name alone, so that results can be kept
under it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.choosing import real
from benchmarks.choosing import synthetic as syn
from benchmarks.choosing.posing import drawn, planted, posed, scaled

Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A problem by name; ``family`` is the line of the report it counts in."""

    name: str
    family: str
    build: Callable[[Generator], sm.Problem]
    large: bool = False
    """Whether a run may take seconds: fewer recipes are measured on it."""

    def problem(self) -> sm.Problem:
        return self.build(np.random.default_rng(zlib.crc32(self.name.encode())))


def cases() -> list[Case]:
    """Return all cases in a fixed order."""
    return [
        *_compressed(),
        *_squared(),
        *_squared_real(),
        *_logistic(),
        *_logistic_real(),
        *_margin(),
        *_counts(),
        *_robust(),
        *_multinomial(),
        *_structured(),
        *_large(),
    ]


# ---- squared loss ----------------------------------------------------------------------------


def _compressed() -> Iterator[Case]:
    kinds: dict[str, Any] = {
        "gaussian": syn.iid,
        "cosines": syn.cosines,
        "operator": syn.cosine_operator,
        "ar.8": syn.autoregressive(0.8),
    }
    for kind, design in kinds.items():
        for n, p, k in ((128, 512, 10), (128, 512, 34), (200, 1000, 20), (256, 1024, 80)):
            for snr in (np.inf, 1e4) if (n, k) == (128, 34) else (np.inf,):
                name = f"recover-{kind}-n{n}-p{p}-k{k}" + ("" if np.isinf(snr) else "-noisy")
                yield Case(name, "compressed sensing", planted(design, n, p, k, snr))
    # At the edge of what can be recovered, where patience decides.
    for kind in ("gaussian", "cosines"):
        for k in (20, 22, 24):
            name = f"recover-{kind}-n64-p256-k{k}"
            yield Case(name, "compressed sensing", planted(kinds[kind], 64, 256, k, np.inf))
    # A few larger ones, where passes and factorisations cost more than the interpreter.
    for k in (40, 200):
        name = f"recover-cosines-n1000-p4000-k{k}"
        yield Case(name, "compressed sensing", planted(syn.cosines, 1000, 4000, k, np.inf))


_CORRELATED: dict[str, Any] = {
    "ar.5": syn.autoregressive(0.5),
    "ar.9": syn.autoregressive(0.9),
    "ar.98": syn.autoregressive(0.98),
    "equal.7": syn.equicorrelated(0.7),
    "blocks.9": syn.blocks(0.9),
    "factors": syn.factors(8),
}


def _squared() -> Iterator[Case]:
    sizes = ((100, 300, 5), (150, 1500, 10), (300, 300, 20), (600, 200, 20), (200, 600, 40))
    for n, p, k in sizes:
        for snr in (1.0, 10.0):
            name = f"squared-iid-n{n}-p{p}-k{k}-snr{snr:g}"
            yield Case(name, "squared, independent", planted(syn.iid, n, p, k, snr, 1e-3))
    for kind, design in _CORRELATED.items():
        for n, p, k, snr in ((100, 400, 10, 5.0), (200, 800, 30, 20.0), (400, 200, 8, 1.0)):
            name = f"squared-{kind}-n{n}-p{p}-k{k}"
            yield Case(name, "squared, correlated", planted(design, n, p, k, snr, 1e-3))
    for kind, design in (("iid", syn.iid), ("blocks.9", syn.blocks(0.9))):
        for n, p, k in ((8000, 50, 10), (4000, 150, 20)):
            name = f"squared-tall-{kind}-n{n}-p{p}-k{k}"
            yield Case(name, "squared, tall", planted(design, n, p, k, 1.0))
    large = planted(syn.autoregressive(0.5), 1000, 4000, 100, 20.0, 1e-3)
    yield Case("squared-ar.5-n1000-p4000-k100", "squared, correlated", large)
    for density in (0.01, 0.05):
        for n, p, k in ((500, 1000, 10), (1000, 2000, 50)):
            name = f"squared-sparse{density:g}-n{n}-p{p}-k{k}"
            build = planted(syn.scattered(density), n, p, k, 5.0, 1e-4)
            yield Case(name, "squared, sparse", build)
    for kind, operator in (("cosine", syn.cosine_operator), ("blur", syn.blur_operator)):
        for n, p, k in ((256, 512, 10), (256, 1024, 40)):
            name = f"squared-{kind}-operator-n{n}-p{p}-k{k}"
            yield Case(name, "squared, operator", planted(operator, n, p, k, 10.0))


def _squared_real() -> Iterator[Case]:
    def houses(k: int, rows: int, columns: int = 0) -> Any:
        def build(rng: Generator) -> sm.Problem:
            X, y = real.table("lucas_house", rows, columns)
            return posed(sm.squared_loss, X, real.standard(y), k, 0.0, intercept=True)

        return build

    def gene(data: str, columns: int, k: int, ridge: float) -> Any:
        """Explain one gene by the others."""

        def build(rng: Generator) -> sm.Problem:
            X, _ = real.table(data, 0, columns)
            j = int(rng.integers(X.shape[1]))
            return posed(sm.squared_loss, np.delete(X, j, 1), X[:, j], k, ridge)

        return build

    for k in (3, 8, 15):
        yield Case(f"houses-k{k}", "squared, real", houses(k, 5000))
    for data, columns in (("golub", 3051), ("khan", 2308), ("bladder22k", 4000)):
        for k in (4, 12):
            yield Case(f"gene-{data}-k{k}", "squared, real", gene(data, columns, k, 1e-3))
    for k in (10, 40):
        yield Case(f"probe-glioma-k{k}", "squared, real", gene("glioma_meth", 1205, k, 0.0))


# ---- logistic loss ---------------------------------------------------------------------------


def _strongly(rng: Generator, z: Any) -> Any:
    return syn.labels(rng, z, 8.0)


def _logistic() -> Iterator[Case]:
    for n, p, k, ridge in (
        (200, 500, 5, 1e-2),
        (200, 500, 20, 1e-3),
        (500, 200, 10, 1e-4),
        (400, 1500, 30, 1e-3),
    ):
        for strength, target in (("weak", syn.labels), ("strong", _strongly)):
            name = f"logistic-iid-{strength}-n{n}-p{p}-k{k}"
            build = drawn(sm.logistic_loss, syn.iid, n, p, k, ridge, target)
            yield Case(name, "logistic, independent", build)
    for kind, design in _CORRELATED.items():
        for n, p, k, ridge in ((150, 400, 8, 1e-2), (300, 800, 20, 1e-4)):
            name = f"logistic-{kind}-n{n}-p{p}-k{k}"
            build = drawn(sm.logistic_loss, design, n, p, k, ridge, syn.labels)
            yield Case(name, "logistic, correlated", build)
    for n, p, k in ((500, 1000, 10), (1000, 2000, 40)):
        for density in (0.01, 0.05):
            name = f"logistic-sparse{density:g}-n{n}-p{p}-k{k}"
            design = syn.scattered(density)
            build = drawn(sm.logistic_loss, design, n, p, k, 1e-4, syn.labels)
            yield Case(name, "logistic, sparse", build)
    design = syn.autoregressive(0.5)
    large = drawn(sm.logistic_loss, design, 800, 4000, 40, 1e-6, _strongly)
    yield Case("logistic-ar.5-n800-p4000-k40", "logistic, correlated", large)
    large = drawn(sm.logistic_loss, design, 2000, 10000, 100, 5e-10, _strongly)
    yield Case("logistic-ar.5-n2000-p10000-k100", "logistic, correlated", large, large=True)
    operator = drawn(sm.logistic_loss, syn.cosine_operator, 256, 512, 10, 1e-4, syn.labels)
    yield Case("logistic-operator-n256-p512-k10", "logistic, sparse", operator)


def _one_against_rest(
    loss: Any, ridge: float, k: int, *slice_: Any, positive: int = 0, intercept: bool = True
) -> Any:
    def build(rng: Generator) -> sm.Problem:
        X, y = (real.table if intercept else real.bare)(*slice_)
        return posed(loss, X, real.signs(y, positive), k, ridge, intercept=intercept)

    return build


def _logistic_real() -> Iterator[Case]:
    for k in (2, 5, 10, 20):
        build = _one_against_rest(sm.logistic_loss, 1e-2, k, "golub")
        yield Case(f"logistic-golub-k{k}", "logistic, real", build)
    for k in (3, 10, 25):
        build = _one_against_rest(sm.logistic_loss, 1e-3, k, "khan", positive=1)
        yield Case(f"logistic-khan-k{k}", "logistic, real", build)
    for k in (5, 20):
        build = _one_against_rest(sm.logistic_loss, 1e-3, k, "adult", 3000, 104)
        yield Case(f"logistic-adult-k{k}", "logistic, real", build)
        build = _one_against_rest(sm.logistic_loss, 1e-4, k, "spam_text", 1500, 3000)
        yield Case(f"logistic-spam-k{k}", "logistic, real", build)
    for k in (4, 8):  # a column of ones that counts
        build = _one_against_rest(sm.logistic_loss, 0.0, k, "adult", 6000, intercept=False)
        yield Case(f"logistic-adult-bare-k{k}", "logistic, real", build)
    build = _one_against_rest(sm.logistic_loss, 1e-4, 6, "letter", 3000, 16, positive=3)
    yield Case("logistic-letter-k6", "logistic, real", build)
    build = _one_against_rest(sm.logistic_loss, 1e-2, 8, "bladder22k", 0, 4000, positive=1)
    yield Case("logistic-bladder-k8", "logistic, real", build)


# ---- other losses ----------------------------------------------------------------------------


_MARGINS: dict[str, Any] = {
    "smoothed-hinge": lambda z, y: sm.smoothed_hinge_loss(z, y, gamma=0.25),
    "squared-hinge": sm.squared_hinge_loss,
    "hinge": sm.hinge_loss,
}


def _margin() -> Iterator[Case]:
    for name, loss in _MARGINS.items():
        for kind, design, n, p, k in (
            ("iid", syn.iid, 200, 400, 10),
            ("ar.9", syn.autoregressive(0.9), 200, 400, 20),
            ("sparse", syn.scattered(0.02), 500, 1000, 20),
        ):
            build = drawn(loss, design, n, p, k, 1e-3, syn.labels)
            yield Case(f"{name}-{kind}", "margin losses", build)
        build = _one_against_rest(loss, 1e-3, 15, "spam_text", 1000, 2000)
        yield Case(f"{name}-spam", "margin losses", build)
        build = _one_against_rest(loss, 1e-2, 6, "golub")
        yield Case(f"{name}-golub", "margin losses", build)


def _counts() -> Iterator[Case]:
    for label, loss, target in (
        ("poisson", sm.poisson_loss, syn.counts),
        ("gamma", sm.gamma_loss, syn.waits),
    ):
        for kind, design, n, p, k in (
            ("iid", syn.iid, 200, 300, 8),
            ("ar.9", syn.autoregressive(0.9), 200, 500, 15),
            ("blocks.9", syn.blocks(0.9), 400, 200, 10),
            ("sparse", syn.scattered(0.03), 500, 800, 15),
        ):
            build = scaled(loss, design, n, p, k, target)
            yield Case(f"{label}-{kind}", "counts and waits", build)


def _robust() -> Iterator[Case]:
    losses = {
        "huber": lambda z, y: sm.huber_loss(z, y, delta=0.5),
        "absolute": sm.absolute_loss,
        "quantile": lambda z, y: sm.quantile_loss(z, y, tau=0.8),
    }
    for name, loss in losses.items():
        for kind, design, n, p, k in (
            ("iid", syn.iid, 150, 300, 6),
            ("ar.9", syn.autoregressive(0.9), 200, 400, 10),
            ("blocks.9", syn.blocks(0.9), 300, 150, 8),
        ):
            build = drawn(loss, design, n, p, k, 1e-3, syn.outlying)
            yield Case(f"{name}-{kind}", "robust losses", build)
    for k in (4, 10):

        def houses(rng: Generator, k: int = k) -> sm.Problem:
            X, y = real.table("lucas_house", 3000, 0)
            huber = losses["huber"]
            return posed(huber, X, real.standard(y), k, 0.0, intercept=True)

        yield Case(f"huber-houses-k{k}", "robust losses", houses)


def _multinomial() -> Iterator[Case]:
    def drawn_classes(design: Any, n: int, p: int, k: int, m: int) -> Any:
        def build(rng: Generator) -> sm.Problem:
            A = design(rng, n, p)
            y = syn.classes(rng, A @ syn.signal(rng, p, k, outputs=m))
            return rows(A, y, k, m, 1e-3)

        return build

    def rows(A: Any, y: Any, k: int, m: int, ridge: float) -> sm.Problem:
        W = sm.Variable((A.shape[1], m), name="W")
        objective = sm.multinomial_loss(sm.as_design(A) @ W, y) + sm.ridge(W, ridge)
        return sm.Problem(sm.minimize(objective), [sm.card(W, axis=1) <= k])

    def measured(k: int, m: int, ridge: float, *slice_: Any) -> Any:
        def build(rng: Generator) -> sm.Problem:
            X, y = real.table(*slice_)
            return rows(X, y, k, m, ridge)

        return build

    yield Case("multinomial-iid", "multinomial", drawn_classes(syn.iid, 200, 200, 6, 3))
    correlated = drawn_classes(syn.autoregressive(0.9), 200, 300, 10, 4)
    yield Case("multinomial-ar.9", "multinomial", correlated)
    for k in (3, 8, 15):
        yield Case(f"multinomial-khan-k{k}", "multinomial", measured(k, 4, 1e-2, "khan"))
    yield Case("multinomial-letter", "multinomial", measured(6, 26, 1e-3, "letter", 300))


def _structured() -> Iterator[Case]:
    def grouped(loss: Any, design: Any, n: int, p: int, k: int, target: Any) -> Any:
        def build(rng: Generator) -> sm.Problem:
            A = design(rng, n, p)
            groups = np.arange(p) // 5
            x = np.where(np.isin(groups, rng.choice(p // 5, k, replace=False)), 1.0, 0.0)
            y = target(rng, A @ (x * rng.standard_normal(p)))
            return posed(loss, A, y, k, 1e-3, groups=groups)

        return build

    def bounded(loss: Any, design: Any, n: int, p: int, k: int, target: Any, **limits: Any) -> Any:
        def build(rng: Generator) -> sm.Problem:
            A = design(rng, n, p)
            y = target(rng, A @ np.abs(syn.signal(rng, p, k)))
            w = sm.Variable(p, name="w")
            constraints: list[Any] = [sm.card(w) <= k, w >= 0]
            if "radius" in limits:
                constraints = [sm.card(w) <= k, sm.norm(w) <= limits["radius"]]
            return sm.Problem(sm.minimize(loss(A @ w, y) + sm.ridge(w, 1e-3)), constraints)

        return build

    for kind, design in (("iid", syn.iid), ("ar.9", syn.autoregressive(0.9))):
        for label, loss, target in (
            ("squared", sm.squared_loss, lambda rng, z: syn.noisy(rng, z, 5.0)),
            ("logistic", sm.logistic_loss, syn.labels),
        ):
            build = grouped(loss, design, 200, 300, 6, target)
            yield Case(f"groups-{label}-{kind}", "groups and bounds", build)
            build = bounded(loss, design, 200, 300, 10, target)
            yield Case(f"nonnegative-{label}-{kind}", "groups and bounds", build)
    for label, loss, target in (
        ("squared", sm.squared_loss, lambda rng, z: syn.noisy(rng, z, 5.0)),
        ("logistic", sm.logistic_loss, syn.labels),
    ):
        build = bounded(loss, syn.iid, 100, 150, 6, target, radius=1.0)
        yield Case(f"ball-{label}", "groups and bounds", build)


def _large() -> Iterator[Case]:
    """A pass takes milliseconds: thoroughness costs what a user would notice."""
    sparse = syn.few(20)
    hinge = _MARGINS["smoothed-hinge"]
    builds: dict[str, Any] = {
        "squared-iid-n1000-p10000-k50": planted(syn.iid, 1000, 10_000, 50, 5.0, 1e-3),
        "squared-ar.9-n1000-p10000-k50": planted(
            syn.autoregressive(0.9), 1000, 10_000, 50, 10.0, 1e-3
        ),
        "squared-tall-n50000-p200-k20": planted(syn.blocks(0.9), 50_000, 200, 20, 1.0),
        "squared-sparse-n5000-p20000-k100": planted(sparse, 5000, 20_000, 100, 5.0, 1e-4),
        "squared-operator-n4096-p16384-k160": planted(syn.cosine_operator, 4096, 16_384, 160, 1e3),
        "logistic-iid-n1000-p5000-k30": drawn(
            sm.logistic_loss, syn.iid, 1000, 5000, 30, 1e-4, syn.labels
        ),
        "logistic-ar.9-n1000-p5000-k30": drawn(
            sm.logistic_loss, syn.autoregressive(0.9), 1000, 5000, 30, 1e-4, syn.labels
        ),
        "logistic-sparse-n5000-p20000-k100": drawn(
            sm.logistic_loss, sparse, 5000, 20_000, 100, 1e-5, syn.labels
        ),
        "logistic-tall-n20000-p200-k20": drawn(
            sm.logistic_loss, syn.blocks(0.9), 20_000, 200, 20, 1e-4, syn.labels
        ),
        "smoothed-hinge-sparse-n5000-p20000-k50": drawn(
            hinge, sparse, 5000, 20_000, 50, 1e-4, syn.labels
        ),
        "squared-hinge-iid-n1000-p5000-k30": drawn(
            _MARGINS["squared-hinge"], syn.iid, 1000, 5000, 30, 1e-4, syn.labels
        ),
        "poisson-iid-n1000-p3000-k20": scaled(sm.poisson_loss, syn.iid, 1000, 3000, 20, syn.counts),
    }
    for name, build in builds.items():
        yield Case(f"large-{name}", "large", build, large=True)
