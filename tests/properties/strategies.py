"""Hypothesis strategies for supports, cardinalities, designs and small problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparsemodel.designs import StackedDesign, TransformedDesign
from sparsemodel.interfaces import Cardinality, DataFit, Design, FloatArray, IntArray
from sparsemodel.losses import HuberLoss, LogisticLoss, SquaredLoss
from sparsemodel.testing.instances.problems import EXACT_STORAGES, Data, Instance


def entries(magnitude: float = 100.0) -> st.SearchStrategy[float]:
    """Return a strategy for moderate numbers, zeros and ties among them.

    Multiples of 1/8, so that sums and differences in the tests are free of rounding.
    """
    steps = int(8 * magnitude)
    return st.integers(-steps, steps).map(lambda i: i / 8.0)


def vectors(size: int, *, magnitude: float = 100.0) -> st.SearchStrategy[FloatArray]:
    """Return a strategy for vectors of :func:`entries`."""
    return hnp.arrays(np.float64, size, elements=entries(magnitude))


@st.composite
def matrices(
    draw: st.DrawFn, *, max_rows: int = 6, max_columns: int = 6, magnitude: float = 10.0
) -> FloatArray:
    """Draw a matrix of :func:`entries` with at least one row and one column."""
    n, p = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    matrix: FloatArray = draw(hnp.arrays(np.float64, (n, p), elements=entries(magnitude)))
    return matrix


@st.composite
def supports(draw: st.DrawFn, size: int, *, min_size: int = 0) -> IntArray:
    """Draw sorted distinct indices below ``size``."""
    mask = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    support = np.flatnonzero(mask)
    return support if support.size >= min_size else np.arange(min_size)


@st.composite
def cardinalities(draw: st.DrawFn, size: int) -> Cardinality:
    """Draw a constraint on ``size`` coordinates, with free ones and groups in some cases."""
    free = draw(supports(size))
    counted = np.setdiff1d(np.arange(size), free)
    groups = None
    if counted.size and draw(st.booleans()):
        labels = draw(
            st.lists(st.integers(0, size - 1), min_size=counted.size, max_size=counted.size)
        )
        groups = np.full(size, -1, dtype=np.intp)
        groups[counted] = np.unique(labels, return_inverse=True)[1]
    every = Cardinality(size, 0, free=free, groups=groups)
    return replace(every, k=draw(st.integers(0, every.units)))


@st.composite
def composed_designs(draw: st.DrawFn, *, depth: int = 2) -> tuple[Design, FloatArray]:
    """Draw a design with the array it stands for: stored plainly, or composed of others.

    Selections, means, scales and stacks (whose blocks may share coordinates) are nested to
    ``depth``.
    """
    kind = draw(st.sampled_from(["stored", "transformed", "stacked"])) if depth else "stored"
    if kind == "stored":
        array = draw(matrices())
        return draw(st.sampled_from(sorted(EXACT_STORAGES.items())))[1](array), array
    if kind == "transformed":
        design, array = draw(composed_designs(depth=depth - 1))
        return draw(_transformations(design, array))
    design, array = draw(composed_designs(depth=depth - 1))
    blocks = [(design, array)]
    if draw(st.booleans()):
        other = draw(st.sampled_from(sorted(EXACT_STORAGES.items())))[1]
        beside = draw(
            hnp.arrays(np.float64, (len(array), draw(st.integers(1, 3))), elements=entries(10.0))
        )
        blocks.append((other(beside), beside))
    size = max(part.shape[1] for _, part in blocks) + draw(st.integers(0, 3))
    out = np.zeros((len(array), size))
    placed = []
    for block, part in blocks:
        order = draw(st.permutations(range(size)))
        index = np.sort(np.array(order[: part.shape[1]], dtype=np.intp))
        out[:, index] += part
        placed.append((index, block))
    return StackedDesign(len(array), size, tuple(placed)), out


@st.composite
def _transformations(
    draw: st.DrawFn, design: Design, array: FloatArray
) -> tuple[Design, FloatArray]:
    p = array.shape[1]
    select = draw(st.none() | supports(p, min_size=1))
    chosen = array if select is None else array[:, select]
    size = chosen.shape[1]
    means = draw(st.none() | vectors(size, magnitude=10.0))
    positive = st.sampled_from([0.125, 0.5, 1.0, 2.0, 3.0])
    scale = draw(st.none() | hnp.arrays(np.float64, size, elements=positive))
    expected = chosen if means is None else chosen - means
    expected = expected if scale is None else expected * scale
    return TransformedDesign(design, select=select, means=means, scale=scale), expected


@st.composite
def instances(draw: st.DrawFn, *, max_size: int = 6, matrix: bool = True) -> Instance:
    """Draw a small regression: one or two terms, weights, offsets, ridge, free and groups."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = draw(st.integers(1, max_size))
    outputs = draw(st.sampled_from([0, 0, 2, 3])) if matrix else 0
    columns = (outputs,) if outputs else ()
    losses: list[DataFit] = [SquaredLoss()]
    if not outputs:
        losses += [LogisticLoss(), HuberLoss()]
    data = []
    for _ in range(draw(st.integers(1, 2))):
        loss = draw(st.sampled_from(losses))
        n = draw(st.integers(1, 8))
        target = rng.standard_normal((n, *columns))
        target = np.where(target > 0.0, 1.0, -1.0) if loss.name == "logistic_loss" else target
        offset = rng.standard_normal((n, *columns)) if draw(st.booleans()) else None
        weights = rng.uniform(0.2, 2.0, size=(n,))
        data.append(Data(rng.standard_normal((n, p)), loss, target, weights, offset))
    return Instance(
        "drawn",
        tuple(data),
        rng.uniform(0.05, 2.0, size=(p,)),
        draw(cardinalities(p)),
        outputs=max(outputs, 1),
        matrix=bool(outputs),
        constant=draw(entries(3.0)),
    )
