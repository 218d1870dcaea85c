"""Numbers and phrases that all reports share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsemodel.certificates.statements.certificate import Certificate


def number(value: float, digits: int = 6) -> str:
    """Return a number for reading: ``digits`` significant ones, words where there is no number."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "none"
    return f"{value:.{digits}g}"


def side_by_side(one: float, two: float) -> tuple[str, str]:
    """Return two nearby numbers with as many digits as it takes to tell them apart."""
    if not (math.isfinite(one) and math.isfinite(two)) or one == two:
        return number(one, 8), number(two, 8)
    scale = max(abs(one), abs(two))
    digits = 2 + math.ceil(math.log10(scale / abs(one - two))) if scale > 0.0 else 6
    digits = min(17, max(6, digits))
    return number(one, digits), number(two, digits)


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits."""
    if not math.isfinite(share):
        return "unknown"
    if share == 0.0:
        return "0 %"
    return f"{100.0 * share:.{3 if share >= 0.01 else 2}g} %"


_TOLERANCE = 1e-2
"""Largest gap asked for that is still called a tolerance."""


def headline(c: Certificate) -> str:
    """Return the claim in a sentence, with the gap where there is one."""
    claim = c.claim.value
    if claim == "within gap":
        return _within(c)
    if claim == "globally optimal" and c.relative_gap > 0.0:
        return "No feasible point is better than this one, up to the accuracy printed below."
    if claim in ("stationary", "none") and math.isfinite(c.bound) and not c.violations:
        # As files of the first version say it: the claim is weaker than the numbers.
        return f"No feasible point has an objective below {number(c.bound)}."
    return c.claim.sentence


def _within(c: Certificate) -> str:
    share = percent(c.relative_gap)
    if c.relative_gap >= 1.0:
        return (
            f"No feasible point has an objective below {number(c.bound)}, which is {share} of the "
            "objective's size away."
        )
    known = f"no feasible point is better than this one by more than {share}."
    if c.proof is not None and c.relative_gap <= c.target <= _TOLERANCE:
        return f"Optimal within the requested tolerance of {percent(c.target)}: {known}"
    return known[0].upper() + known[1:]


def model(c: Certificate) -> str:
    """Return the problem in a line: losses, sizes, constraints."""
    p = c.problem
    losses = " + ".join(
        f"{t.loss}{_parameters(t.parameters)} on {t.observations} x {t.coordinates}"
        for t in p.terms
    )
    units = "groups" if p.grouped else "rows" if len(p.shape) > 1 else "coefficients"
    parts = [losses]
    if p.ridge_largest > 0.0:
        same = p.ridge_smallest == p.ridge_largest
        low, high = number(p.ridge_smallest, 4), number(p.ridge_largest, 4)
        parts.append(f"ridge {low if same else f'{low} to {high}'}")
    forced = p.forced or 0
    limit = f"at most {p.k} of {p.units + forced} {units} nonzero"
    parts.append(limit + (f" ({forced} of them by their bounds)" if forced else ""))
    if p.price > 0.0:
        parts.append(f"each costs {number(p.price, 4)}")
    free = p.free if p.grouped else p.free - forced
    if free:
        parts.append(f"{free} always in")
    if p.box != "none":
        parts.append("bounds on coefficients")
    if p.region != "none":
        parts.append("further convex constraints (the bound does without them)")
    return ", ".join(parts)


def facts(c: Certificate) -> list[tuple[str, str]]:
    """Return the numbers of a certificate as ``(name, value)`` rows."""
    value, bound = side_by_side(c.value, c.bound)
    rows = [
        ("objective P", value),
        ("lower bound D", bound if math.isfinite(c.bound) else f"none ({c.bound_reason})"),
    ]
    if math.isfinite(c.gap):
        rows += [
            ("gap P - D", number(c.gap, 3)),
            ("relative gap", percent(c.relative_gap)),
        ]
    rows += [
        ("objective at zero", number(c.null_value)),
        ("rounding allowance", f"{number(c.allowance, 2)} (already in the gap)"),
        ("bound from", c.bound_method),
    ]
    return rows


def proof_summary(c: Certificate) -> list[tuple[str, str]]:
    """Return what the writer says of its search as ``(name, value)`` rows; none without one."""
    if c.proof is None:
        return []
    return [
        (str(key), number(value) if isinstance(value, float) else str(value))
        for key, value in c.proof.get("summary", {}).items()
        if key != "gap asked for"  # among the rows about the writer
    ]


def first_order(c: Certificate) -> list[tuple[str, str]]:
    """Return the first-order facts as rows."""
    s = c.stationarity
    if not s.smooth:
        return [("gradient", "the loss has none everywhere; only the bound speaks")]
    rows = [("gradient on the support", f"{number(s.residual, 2)} of that without coefficients")]
    if math.isfinite(s.step):
        rows.append(("smallest coefficient / largest other gradient", number(s.step, 3)))
    if math.isfinite(s.threshold):
        needed = "not reached"
        if s.optimal_at_sight:
            proved = c.claim.value == "globally optimal"
            needed = "reached: optimal at sight" if proved else "reached, to first order"
        rows.append(("that proves optimality from", f"{number(s.threshold, 3)} ({needed})"))
    return rows


ORIGIN = "Origin, in the words of the certificate's writer (verify() does not check it)"


def origin(c: Certificate) -> list[tuple[str, str]]:
    """Return what the writer of a certificate says of itself, as rows."""
    rows = []
    if c.backend:
        rows.append(("found by", c.backend))
    rows.append(("bound found by", c.bound_source))
    rows.append(("gap asked for", percent(c.target)))
    rows.append(("names", "as they were declared there"))
    rows.append(("certified", f"{c.created}, {number(c.seconds, 2)} s"))
    rows.append(("versions", ", ".join(f"{k} {v}" for k, v in c.versions.items())))
    return [*rows, *proof_summary(c)]


def fingerprints(c: Certificate) -> list[tuple[str, str]]:
    """Return which data the certificate is about, as rows."""
    rows = []
    for index, term in enumerate(c.problem.terms):
        label = "data" if len(c.problem.terms) == 1 else f"data {index + 1}"
        rows.append((label, term.design[:39] + ("..." if len(term.design) > 39 else "")))
        rows.append((label + " target", "sha256:" + term.target[:32] + "..."))
    return rows


def coefficient_rows(c: Certificate) -> list[tuple[str, float, str]]:
    """Return ``(name, size, text)`` for every coefficient, largest first, free ones last."""
    chosen = set(c.support)
    rows = []
    for j, name in c.names.items():
        entry = c.x[j]
        size = float(abs(entry)) if c.x.ndim == 1 else float((entry @ entry) ** 0.5)
        if c.x.ndim == 1:
            text = f"{float(entry):.6g}"
        else:
            text = ", ".join(f"{float(v):.4g}" for v in entry)
        rows.append((j not in chosen, -size, name, text))
    return [(name, -size, text) for _, size, name, text in sorted(rows)]


def _parameters(parameters: dict[str, object]) -> str:
    kept = {k: v for k, v in parameters.items() if v is not None}
    return "(" + ", ".join(f"{k}={v}" for k, v in kept.items()) + ")" if kept else ""


__all__ = [
    "ORIGIN",
    "coefficient_rows",
    "facts",
    "fingerprints",
    "first_order",
    "headline",
    "model",
    "number",
    "origin",
    "percent",
    "proof_summary",
    "side_by_side",
]
