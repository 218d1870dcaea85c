"""The laws of convex losses: derivatives, convexity, bounds, conjugates, smoothing, weights."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import (
    Affine,
    Conjugable,
    Curved,
    DataFit,
    FloatArray,
    IntervalConjugable,
    Loss,
    LossTraits,
    OfDifference,
    OfResidual,
    Piecewise,
    Quadratic,
    SimplexConjugable,
    Smoothable,
    SquaredDistance,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.numeric import rowwise
from sparsemodel.testing.report import CheckFailure, Refusal

SCALES = (0.3, 2.0, 8.0)
"""Standard deviations of the predictions that laws are checked at."""


def predictions(
    loss: DataFit, y: FloatArray, rng: np.random.Generator, scale: float = 2.0
) -> FloatArray:
    """Return normal predictions in the shape that the target asks for."""
    outputs = loss.outputs(y)
    shape: tuple[int, ...] = (y.shape[0],) if outputs == 1 else (y.shape[0], outputs)
    return scale * rng.standard_normal(size=shape)


def weights(y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return unequal positive weights."""
    return 0.2 + 1.8 * rng.random(size=(y.shape[0],))


def row_sums(v: FloatArray) -> FloatArray:
    """Return one number per observation."""
    return v if v.ndim == 1 else np.asarray(v.sum(axis=1))


def expect(condition: object, message: str) -> None:
    """Raise :class:`CheckFailure` unless ``condition`` holds in every entry."""
    holds = np.atleast_1d(np.asarray(condition))
    if not holds.all():
        where = np.argwhere(~holds)[0].tolist()
        place = f" (first at index {where}, {int((~holds).sum())} in all)" if holds.size > 1 else ""
        raise CheckFailure(message + place)


def near(
    actual: FloatArray | float, expected: FloatArray | float, message: str, tol: float = 1e-12
) -> None:
    """Raise :class:`CheckFailure` where entries differ by ``tol * (1 + max|expected|)``."""
    actual, expected = np.atleast_1d(actual), np.atleast_1d(expected)
    expect(actual.shape == expected.shape, f"{message}: shapes {actual.shape}, {expected.shape}")
    error = np.abs(actual - expected)
    size = 1.0 + float(np.max(np.abs(expected), initial=0.0))
    expect(error <= tol * size, f"{message}: off by {error.max(initial=0.0):.3g}")


_STEP = 1e-5


def check_gradient_by_differences(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that the gradient lies between the one-sided difference quotients.

    That is the definition of a subgradient of a convex function, so that kinks need no exception.
    For :class:`Loss` the derivative of every observation is checked as well.
    """
    for scale in SCALES:
        u, c = predictions(loss, y, rng, scale), weights(y, rng)
        d = rng.choice([-1.0, 1.0], size=u.shape)
        ahead, here, behind = (loss.total(u + t * d, y, c) for t in (_STEP, 0.0, -_STEP))
        slope = float(np.sum(loss.gradient(u, y, c) * d))
        _sandwiched(slope, behind, here, ahead, "gradient of the total")
        if isinstance(loss, Loss):
            slopes = row_sums(loss.derivative(u, y) * d)
            before, at, after = (loss.value(u + t * d, y) for t in (-_STEP, 0.0, _STEP))
            _sandwiched(slopes, before, at, after, "derivative of an observation")


def check_hessian_by_differences(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check Hessian products against differences of gradients, symmetry and sign."""
    if not isinstance(loss, TwiceDifferentiable):
        raise Refusal("not TwiceDifferentiable")
    for scale in SCALES:
        u, c = predictions(loss, y, rng, scale), weights(y, rng)
        d, e = rng.normal(size=u.shape), rng.normal(size=u.shape)
        step = _STEP * d
        difference = (loss.gradient(u + step, y, c) - loss.gradient(u - step, y, c)) / (2 * _STEP)
        product = loss.hessian_product(u, y, c, d)
        # A generalised second derivative jumps: near a jump anything between is right.
        beside = [loss.hessian_product(u + t * step, y, c, d) for t in (-1.0, 1.0)]
        jump = np.max(np.abs(np.stack(beside) - product), axis=0)
        size = 1.0 + np.abs(product) + np.abs(loss.gradient(u, y, c))
        expect(np.abs(difference - product) <= jump + 1e-6 * size, "Hessian product differs")
        other = loss.hessian_product(u, y, c, e)
        bound = 1e-10 * (np.sum(np.abs(e * product)) + np.sum(np.abs(d * other)) + 1e-300)
        expect(abs(np.sum(e * product) - np.sum(d * other)) <= bound, "Hessian not symmetric")
        curvature = float(np.sum(d * product))
        expect(curvature >= -1e-10 * np.sum(np.abs(d * product)), "Hessian not positive")
        if isinstance(loss, Curved):
            h = loss.second_derivative(u, y)
            expect(h >= 0.0, "second derivative is negative")
            near(product, rowwise(c * h, d), "Hessian is not diag(c h)")
        shares = loss.hessian_shares(u, y, c) if u.ndim == 2 else None
        if shares is not None:
            common = np.sum(shares * d, axis=1) / np.maximum(shares.sum(axis=1), 1e-300)
            near(product, shares * (d - common[:, None]), "Hessian is not that of its shares")


def check_quadratic(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that the Hessian of a loss that says it is quadratic is the same everywhere."""
    if not isinstance(loss, Quadratic):
        raise Refusal("not Quadratic")
    u, v, c = predictions(loss, y, rng), predictions(loss, y, rng, 50.0), weights(y, rng)
    near(loss.second_derivative(u, y), loss.second_derivative(v, y), "second derivative varies")
    newton = loss.gradient(u, y, c) + loss.hessian_product(u, y, c, v - u)
    near(newton, loss.gradient(v, y, c), "gradient is not affine", 1e-10)


def check_closed_forms(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check a loss that says which formula it has against that formula."""
    traits = LossTraits.of(loss, y)
    even = isinstance(loss, OfDifference) and loss.even
    known = traits.gram or traits.of_residual or traits.simplex or even
    if not (known and isinstance(loss, Loss)):
        raise Refusal("no formula is promised")
    for scale in (*SCALES, 100.0):
        u = predictions(loss, y, rng, scale)
        value, slope = loss.value(u, y), loss.derivative(u, y)
        if isinstance(loss, SquaredDistance):
            r = u - loss.centre(y)
            near(value, 0.5 * loss.steepness * row_sums(r * r), "not s/2 (u - centre)^2", 1e-10)
            near(slope, loss.steepness * r, "derivative is not s (u - centre)", 1e-10)
        if isinstance(loss, Affine):
            near(value, row_sums(loss.slope(y) * u), "not slope * u")
            near(slope, loss.slope(y), "derivative is not the slope")
        if isinstance(loss, OfResidual):
            near(loss.value(u - y, np.zeros_like(y)), value, "not of the residual alone", 1e-10)
            expect(loss.value(y, y) == 0.0, "not zero at the target")
            expect((value > 0.0) | (row_sums(np.abs(u - y)) == 0.0), "zero beside the target")
        if even:
            near(loss.value(y - (u - y), y), value, "not even in the residual", 1e-10)
        if isinstance(loss, SimplexConjugable):
            s = np.maximum(loss.chances(slope, y), 1e-12)
            near(row_sums(loss.chance_conjugate(s)), loss.conjugate(slope, y), "conjugate", 1e-9)
            again = loss.derivative(loss.link(s), y)
            near(again, slope, "link is not where the chances come from", 1e-8)


def check_convexity(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check the loss along random segments, and that its gradient is monotone."""
    for scale in (*SCALES, 100.0):
        u, v = predictions(loss, y, rng, scale), predictions(loss, y, rng, scale)
        c, t = weights(y, rng), float(rng.uniform())
        middle = t * u + (1.0 - t) * v
        ends = t * loss.total(u, y, c), (1.0 - t) * loss.total(v, y, c)
        slack = 1e-11 * (1.0 + abs(ends[0]) + abs(ends[1]))
        expect(loss.total(middle, y, c) <= sum(ends) + slack, "total not convex")
        change = (loss.gradient(u, y, c) - loss.gradient(v, y, c)) * (u - v)
        expect(np.sum(change) >= -1e-11 * np.sum(np.abs(change)), "gradient not monotone")
        if isinstance(loss, Loss):
            rows = t * loss.value(u, y), (1.0 - t) * loss.value(v, y)
            slacks = 1e-11 * (1.0 + np.abs(rows[0]) + np.abs(rows[1]))
            expect(loss.value(middle, y) <= rows[0] + rows[1] + slacks, "value not convex")


def check_curvature_bounds(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check the bounds on the second derivative with differences of gradients."""
    lower, upper = loss.curvature(y)
    expect(0.0 <= lower <= upper, f"curvature bounds ({lower}, {upper}) are out of order")
    if lower == 0.0 and upper == np.inf:
        raise Refusal("claims neither smoothness nor strong convexity")
    for scale in SCALES:
        for distance in (0.01, 1.0, 10.0):
            u, c = predictions(loss, y, rng, scale), weights(y, rng)
            d = distance * rng.normal(size=u.shape)
            change = loss.gradient(u + d, y, c) - loss.gradient(u, y, c)
            rounding = 1e-12 * (1.0 + np.linalg.norm(loss.gradient(u, y, c)))
            length = float(np.linalg.norm(d))
            most, least = upper * c.max() * length, lower * c.min() * length**2
            expect(np.linalg.norm(change) <= most * (1 + 1e-9) + rounding, "upper bound broken")
            expect(np.sum(change * d) >= least * (1 - 1e-9) - rounding, "lower bound broken")
            if isinstance(loss, Loss):
                lengths = row_sums(d * d)
                rises = row_sums((loss.derivative(u + d, y) - loss.derivative(u, y)) * d)
                slack = rounding * (1.0 + lengths)
                expect(rises <= upper * lengths * (1 + 1e-9) + slack, "upper bound broken")
                expect(rises >= lower * lengths * (1 - 1e-9) - slack, "lower bound broken")
            if isinstance(loss, TwiceDifferentiable):
                ratio = float(np.sum(d * loss.hessian_product(u, y, c, d))) / length**2
                inside = lower * c.min() - 1e-12 <= ratio * (1 + 1e-12)
                inside &= ratio <= upper * c.max() * (1 + 1e-12)
                expect(inside, f"Hessian has the Rayleigh quotient {ratio:g}, out of its bounds")


def check_infimum(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that the infimum is a lower bound, also far down a descent."""
    c = weights(y, rng)
    infimum = loss.infimum(y, c)
    expect(isinstance(infimum, float), f"infimum returns {type(infimum).__name__}, not float")
    expect(infimum < np.inf, f"infimum is {infimum!r}")
    if infimum == -np.inf:
        raise Refusal("no infimum known")
    starts = [predictions(loss, y, rng, s) for s in (0.0, *SCALES, 100.0)]
    if isinstance(loss, Loss) and starts[0].ndim == 1:
        grid = np.linspace(-12.0, 12.0, 193)
        values = np.stack([loss.value(np.full(y.shape[0], t), y) for t in grid])
        starts.append(grid[np.argmin(values, axis=0)])
    found = min([loss.total(u, y, c) for u in starts] + [_descend(loss, u, y, c) for u in starts])
    slack = 1e-12 * (1.0 + abs(infimum))
    expect(found >= infimum - slack, f"{found} was reached, below the infimum {infimum}")


def check_fenchel_young(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check ``value(u) + conjugate(a) >= a u``, with equality at the derivative."""
    if not isinstance(loss, Conjugable) or not isinstance(loss, Loss):
        raise Refusal("not Conjugable")
    for scale in (*SCALES, 100.0):
        u = predictions(loss, y, rng, scale)
        value, slope = loss.value(u, y), loss.derivative(u, y)
        conjugate = loss.conjugate(slope, y)
        expect(np.isfinite(conjugate), "derivative outside the domain of the conjugate")
        size = 1.0 + np.abs(value) + np.abs(conjugate) + row_sums(np.abs(slope * u))
        gap = value + conjugate - row_sums(slope * u)
        expect(np.abs(gap) <= 1e-12 * size, "Fenchel-Young equality fails at the derivative")
        for spread in (0.1, 1.0, 10.0):
            a = loss.project_dual(spread * rng.normal(size=u.shape), y)
            conjugate = loss.conjugate(a, y)
            size = 1.0 + np.abs(value) + np.abs(conjugate) + row_sums(np.abs(a * u))
            gap = value + conjugate - row_sums(a * u)
            expect(gap >= -1e-12 * size, "Fenchel-Young inequality fails")


def check_dual_projection(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that ``project_dual`` gives the nearest point of the conjugate's domain."""
    if not isinstance(loss, Conjugable):
        raise Refusal("not Conjugable")
    for spread in (0.1, 1.0, 10.0, 1000.0):
        raw = predictions(loss, y, rng, spread)
        nearest = loss.project_dual(raw, y)
        other = loss.project_dual(predictions(loss, y, rng, spread), y)
        expect(np.isfinite(loss.conjugate(nearest, y)), "projection outside the domain")
        near(loss.project_dual(nearest, y), nearest, "projection moves a point of the domain")
        # The nearest point of a convex set is the one seen under an obtuse angle.
        out = raw - nearest
        angle = row_sums(out * (other - nearest))
        size = 1e-12 * (1.0 + spread) * (1.0 + row_sums(np.abs(out)))
        expect(angle <= size, "projection is not the nearest point of the domain")
        outside = np.sqrt(row_sums(out * out)) > 1e-6 * (1.0 + spread)
        beyond = loss.conjugate(nearest + 0.5 * out, y)
        expect(~outside | np.isposinf(beyond), "conjugate is finite outside its domain")
    if isinstance(loss, IntervalConjugable):
        lower, upper = loss.dual_interval(y)
        expect(lower <= upper, "dual interval is empty")
        expect((lower.shape == y.shape) & (upper.shape == y.shape), "dual interval has a shape")


def check_pieces(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that the loss is the sum of its pieces, to the left and to the right of every kink."""
    if not isinstance(loss, Piecewise) or not isinstance(loss, Loss):
        raise Refusal("not Piecewise")
    soft = loss.softness
    for scale in SCALES:
        u = predictions(loss, y, rng, scale)
        total, size = np.zeros(y.shape), 1.0 + np.abs(u)
        for at, lower, upper in loss.pieces(y):
            expect((lower <= 0.0) & (upper >= 0.0), "slopes of a piece that has no minimum")
            r = u - at
            a = np.where(r > 0.0, upper, lower) if soft == 0.0 else np.clip(r / soft, lower, upper)
            total += a * (r - 0.5 * soft * a)
            size += np.abs(a) * (np.abs(r) + soft * np.abs(a) + np.abs(at))
        expect(np.abs(total - loss.value(u, y)) <= 1e-12 * size, "pieces add up to something else")


def check_smoothing(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check ``0 <= loss - smoothed <= bound`` and the Lipschitz constant ``1 / mu``."""
    if not isinstance(loss, Smoothable) or not isinstance(loss, Loss):
        raise Refusal("not Smoothable")
    for mu in (1e-3, 0.1, 2.0):
        smooth, bound = loss.smoothed(mu), loss.smoothing_error(mu)
        upper = smooth.curvature(y)[1]
        expect(upper <= (1 + 1e-12) / mu, f"smoothed({mu}) has the curvature {upper}")
        for scale in SCALES:
            u = predictions(loss, y, rng, scale)
            value = loss.value(u, y)
            drop, rounding = value - smooth.value(u, y), 1e-12 * (1.0 + np.abs(value))
            expect(drop >= -rounding, "smoothed loss lies above the loss")
            expect(drop <= bound + rounding, "smoothed loss lies further below than promised")
        check_curvature_bounds(smooth, y, rng)


def check_weights(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that weights act as multiplicities, and that the order of the rows is nothing.

    The total must be proportional to the weights. Repeating observations must do what whole
    weights do; for losses that couple observations, up to a constant independent of ``u``.
    """
    u, v, c = predictions(loss, y, rng), predictions(loss, y, rng), weights(y, rng)
    total, gradient = loss.total(u, y, c), loss.gradient(u, y, c)
    near(loss.total(u, y, 3.0 * c), 3.0 * total, "total not proportional to weights")
    near(loss.gradient(u, y, 3.0 * c), 3.0 * gradient, "gradient not proportional")
    times = rng.integers(1, 4, size=c.size)
    rows, ones = np.repeat(np.arange(c.size), times), np.ones(int(times.sum()))
    counts = times.astype(np.float64)
    one_by_one = [loss.total(at[rows], y[rows], ones) for at in (u, v)]
    at_once = [loss.total(at, y, counts) for at in (u, v)]
    if isinstance(loss, Loss):
        near(np.array(at_once), np.array(one_by_one), "weights are no multiplicities")
    difference = one_by_one[0] - one_by_one[1], at_once[0] - at_once[1]
    size = 1e-10 * (1.0 + sum(map(abs, one_by_one)))
    expect(abs(difference[0] - difference[1]) <= size, "weights are no multiplicities")
    slopes = loss.gradient(u[rows], y[rows], ones)
    summed = np.add.reduceat(slopes, np.cumsum(times) - times, axis=0)
    near(loss.gradient(u, y, counts), summed, "gradient with multiplicities", 1e-10)
    p = rng.permutation(c.size)
    near(loss.total(u[p], y[p], c[p]), total, "order of observations matters")
    near(loss.gradient(u[p], y[p], c[p]), gradient[p], "gradient not permuted")


def _sandwiched(
    slope: FloatArray | float,
    behind: FloatArray | float,
    here: FloatArray | float,
    ahead: FloatArray | float,
    what: str,
) -> None:
    # Rounding of the values is magnified by the step: 1e-15 / 1e-5 is well below the allowance.
    rounding = 1e-9 * (1.0 + np.abs(here) + np.abs(slope))
    left, right = (here - behind) / _STEP, (ahead - here) / _STEP
    inside = (left - rounding <= slope) & (slope <= right + rounding)
    expect(inside, f"{what} is not between the one-sided difference quotients")


def _descend(loss: DataFit, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
    """Return the smallest total along 60 steps of gradient descent with backtracking."""
    value, step = loss.total(u, y, c), 1.0
    for _ in range(60):
        trial = u - step * loss.gradient(u, y, c)
        reached = loss.total(trial, y, c)
        if reached < value:
            u, value, step = trial, reached, 2.0 * step
        else:
            step *= 0.25
    return value
