"""How well a model fits the observations it was made from, and how sure its coefficients are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from sparsemodel.documents.document import Document, Facts, Items, Section, Table
from sparsemodel.documents.documented import Documented
from sparsemodel.documents.numbers import number, percent

_SELECTED = (
    "The standard errors ignore that the support was selected with these observations. They are "
    "too small, and intervals and p-values based on them are too optimistic (Berk, Brown, Buja, "
    "Zhang and Zhao, Annals of Statistics 2013). Valid ones need observations that were not used "
    "for the selection."
)


class Estimate(NamedTuple):
    """A coefficient, and what its support says of it without the ridge."""

    name: str
    value: float
    """As it is in the solution."""
    refitted: float | None
    """Minimises the loss on the support without the ridge."""
    standard_error: float | None
    """That of ``refitted``, on a support known before."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Documented):
    r"""Measures of fit on the fitted observations; new ones are predicted less well.

    The formulas use observations :math:`y_i` with weights :math:`c_i` that sum to one, predicted
    means :math:`\mu_i`, the mean loss :math:`F`, its value :math:`F_0` at the best constant, and
    its infimum :math:`F_s` over all predictions. There are ``d`` estimated coefficients, of which
    ``k`` were selected, and ``n`` observations (what weights mean is said in
    :mod:`sparsemodel.selection.weights`). Measures that a loss does not have are None.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [0.5, 2.0, -1.0]))
    >>> summary = sm.Problem(goal, sm.card(w) <= 2).solve().summary()
    >>> summary.k, round(summary.r2, 3)
    (2, 0.944)
    """

    loss: str
    n: float
    """Observations."""
    k: int
    """Nonzero units among those that are counted."""
    d: int
    """Estimated coefficients, uncounted ones included."""
    mean_loss: float
    """:math:`F`, without ridge and price."""
    r2: float | None = None
    r""":math:`1 - \sum c_i (y_i - \mu_i)^2 / \sum c_i (y_i - \bar y)^2`, of losses whose prediction
    is a value of the target; :math:`\bar y` is the weighted mean, of each output its own."""
    rmse: float | None = None
    r""":math:`(\sum c_i (y_i - \mu_i)^2)^{1/2}`, in the units of the target."""
    deviance_explained: float | None = None
    r"""D2, :math:`(F_0 - F) / (F_0 - F_s)` (Cameron and Windmeijer, J. of Econometrics 1997; of
    quantiles Koenker and Machado, JASA 1999); R2 for the squared loss."""
    accuracy: float | None = None
    """The weighted share of observations whose class is predicted."""
    largest_class: float | None = None
    """The share of the largest class: the accuracy of always predicting it."""
    auc: float | None = None
    """The probability that of two observations the one of the positive class has the larger score,
    ties counting half (Hanley and McNeil, Radiology 1982); of two classes."""
    positive: str | None = None
    """The class that a positive coefficient makes likelier; of two classes."""
    aic: float | None = None
    bic: float | None = None
    """As :mod:`sparsemodel.selection.criteria`, with ``d`` coefficients: ``d`` does not count
    how many sets were searched."""
    ebic: float | None = None
    """BIC with the number of supports of ``k`` units; it does."""
    estimates: Sequence[Estimate] = ()
    """Nonzero coefficients; empty for several outputs."""
    without_errors: str = ""
    """Why there are no standard errors, where there are none."""

    def measures(self) -> dict[str, str]:
        """Return the measures that there are, by name, for reading."""
        found: dict[str, str] = {}
        if self.accuracy is not None and self.largest_class is not None:
            alone = percent(self.largest_class)
            found["accuracy"] = f"{percent(self.accuracy)} (the largest class alone: {alone})"
        for name, value in (("AUC", self.auc), ("R2", self.r2), ("RMSE", self.rmse)):
            if value is not None:
                found[name] = number(value, 3)
        if self.deviance_explained is not None and self.loss != "squared_loss":
            found["D2"] = number(self.deviance_explained, 3)
        return found

    def document(self) -> Document:
        """Return the measures and the coefficients in words."""
        rows = [("observations", number(self.n)), ("loss", f"{self.loss}, {self.mean_loss:.6g}")]
        if self.positive is not None:
            rows.append(("positive class", self.positive))
        rows += self.measures().items()
        criteria = (("AIC", self.aic), ("BIC", self.bic), ("EBIC", self.ebic))
        known = [f"{name} {value:.6g}" for name, value in criteria if value is not None]
        if known:
            rows.append(("criteria", ", ".join(known) + " (without constants)"))
        sections = [Section("", (Facts(rows),), folded=False)]
        if self.estimates:
            sections.append(self._coefficients())
        return Document(
            "Fit", f"{self.k} nonzero, {self.d} coefficients estimated", tuple(sections)
        )

    def _coefficients(self) -> Section:
        if self.without_errors:
            pairs = [(e.name, number(e.value, 4)) for e in self.estimates]
            said = f"No standard errors: {self.without_errors}."
            return Section("Coefficients", (Facts(pairs), Items((said,))), folded=False)
        cells = [
            [e.name, *("" if v is None else number(v, 4) for v in e[1:])] for e in self.estimates
        ]
        table = Table(("name", "coefficient", "without ridge", "std. error"), cells)
        return Section("Coefficients", (table, Items((_SELECTED,))), folded=False)
