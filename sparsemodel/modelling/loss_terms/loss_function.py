"""The function of a loss, made from its class: its parameters are the fields of the class."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from inspect import Parameter, Signature, getdoc
from types import MappingProxyType
from typing import Any, Literal, ParamSpec, Protocol, cast, overload

import numpy as np

from sparsemodel.arguments import refuse_call
from sparsemodel.interfaces import DataFit, ModelError, OfDifference, TargetKind
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.foreign import as_ours
from sparsemodel.modelling.expressions.objective_terms import LossTerm, Reduction
from sparsemodel.modelling.loss_terms.terms import loss_term

P = ParamSpec("P")
"""The parameters of a loss."""

_COMMON = ("weights", "weights_are", "reduction")
"""What all losses take."""

Links = Mapping[str, type[DataFit] | str]
"""Further links of a loss: the class that it has with each, or why there is none."""


class LossFunction(Protocol[P]):
    """What :func:`loss_function` returns; ``P`` are the parameters of the loss."""

    @overload
    def __call__(
        self, prediction: Any, target: Any = ..., /, *args: P.args, **kwargs: P.kwargs
    ) -> LossTerm: ...

    @overload
    def __call__(
        self,
        prediction: Any,
        target: Any = None,
        *,
        weights: Any = None,
        weights_are: str = "precision",
        reduction: Reduction = "mean",
        **parameters: Any,
    ) -> LossTerm: ...


def loss_function(
    loss: Callable[P, DataFit], links: Links = MappingProxyType({})
) -> LossFunction[P]:
    """Return the function of a class of losses: ``(prediction, target, *, ...) -> LossTerm``.

    Losses of a difference (see :class:`OfDifference`) may be called without a target: it is then
    what is constant in a residual such as ``A @ w - b``.

    Examples
    --------
    >>> from sparsemodel.losses import HuberLoss
    >>> huber_loss = loss_function(HuberLoss)
    >>> list(huber_loss.__signature__.parameters)
    ['prediction', 'target', 'delta', 'weights', 'weights_are', 'reduction']
    """
    kind = cast("type[DataFit]", loss)
    signature = _signature(kind, links)

    def function(*args: Any, **kwargs: Any) -> LossTerm:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            refuse_call(f"sm.{kind.name}", signature, args, kwargs)
            raise
        prediction, target = given.pop("prediction"), given.pop("target", None)
        common = {name: given.pop(name) for name in _COMMON if name in given}
        made = _linked(kind, links, given.pop("link", "log"))(**given)
        if target is None and isinstance(made, OfDifference):
            prediction, target = _parts_of_residual(made, as_ours(prediction))
        return loss_term(made, prediction, target, **common)

    function.__name__ = function.__qualname__ = kind.name
    function.__module__ = "sparsemodel"
    function.__doc__ = _description(kind, links)
    function.__annotations__ = {
        **{name: p.annotation for name, p in signature.parameters.items()},
        "return": signature.return_annotation,
    }
    function.__signature__ = signature  # type: ignore[attr-defined]
    return cast("LossFunction[P]", function)


def _signature(kind: type[DataFit], links: Links) -> Signature:
    by_name = partial(Parameter, kind=Parameter.KEYWORD_ONLY)
    target: Any = None if issubclass(kind, OfDifference) else Parameter.empty
    known = [name for name, loss in links.items() if not isinstance(loss, str)]
    link = by_name("link", default="log", annotation=Literal[("log", *known)])
    parameters = [
        Parameter("prediction", Parameter.POSITIONAL_OR_KEYWORD, annotation="Any"),
        Parameter("target", Parameter.POSITIONAL_OR_KEYWORD, default=target, annotation="Any"),
        *(by_name(f.name, default=f.default, annotation=f.type) for f in fields(kind)),  # type: ignore[arg-type]
        *([link] if links else ()),
        by_name("weights", default=None, annotation="Any"),
        by_name("weights_are", default="precision", annotation="str"),
        by_name("reduction", default="mean", annotation="Reduction"),
    ]
    return Signature(parameters, return_annotation="LossTerm")


def _linked(kind: type[DataFit], links: Links, link: object) -> type[DataFit]:
    """Return the class of a loss with a link, or raise the error that says which there are."""
    known = {"log": kind, **links}
    loss = known.get(link) if isinstance(link, str) else None
    if isinstance(loss, type):
        return loss
    names = " or ".join(f'"{name}"' for name, one in known.items() if isinstance(one, type))
    why = f"; {loss}" if loss else ""
    raise ModelError(f"sm.{kind.name} has the link {names}, not {link!r}{why}.")


def _parts_of_residual(loss: DataFit, residual: Any) -> tuple[Affine, Any]:
    """Return prediction and target of a residual: what is constant in it is minus the target."""
    if not (isinstance(loss, OfDifference) and loss.even):
        given = "".join(f", {field.name}=..." for field in fields(loss))  # type: ignore[arg-type]
        raise ModelError(
            f"{loss.name} needs prediction and target apart, as it is another function of `u - y` "
            f"than of `y - u`: sm.{loss.name}(A @ w, b{given})."
        )
    affine = residual.as_affine() if isinstance(residual, AffineLike) else None
    if affine is None or affine.offset is None:
        raise ModelError(
            f"{loss.name} needs its target: sm.{loss.name}(A @ w, b), or a residual that has it, "
            f"sm.{loss.name}(A @ w - b). A target of zero is np.zeros(n), for n rows."
        )
    shape = affine.value_shape()
    if np.shape(affine.offset) == shape:
        return Affine(affine.pieces), -affine.offset
    return affine, np.zeros(shape)  # one number, or one row, for all observations


# ---- descriptions ----------------------------------------------------------------------------

_TARGETS = {
    TargetKind.NUMBERS: "``y``: one number per observation, shape ``(n,)``{}.",
    TargetKind.TWO_CLASSES: "Labels -1/1, 0/1, booleans, or two strings (the second in sorted "
    "order is +1).",
    TargetKind.CLASSES: "Classes 0, 1, ..., m-1, or strings, which are numbered in sorted order.",
    TargetKind.TIMES: "Shape ``(n, 2)``: times, and 1 for an event or 0 for censoring; or "
    "``(n, 3)``, with strata; or start, stop and event (and strata) for delayed entry.",
}
_RESIDUAL = "; left out where the prediction is a residual, ``A @ w - b``"
_PREDICTION = """\
prediction
    ``u``: an affine expression such as ``A @ w + c``, or a matrix ``A`` alone, which means
    ``A @ w`` for the problem's one vector variable.
target
    {}
"""
_SHARED = """\
weights
    Nonnegative observation weights; the mean is still taken over ``n``.
weights_are
    What the weights mean, which no fit depends on, but standard errors, criteria and the choice of
    ``k = 0``: ``"precision"`` (one over a variance, as ``weights=`` of R), ``"frequency"`` (a
    weight of three is three equal rows) or ``"sampling"`` (one over the chance to be in the
    sample); see :mod:`sparsemodel.selection.weights`.
reduction
    ``"mean"`` divides the (weighted) sum by ``n``; ``"sum"`` does not.
"""
_LINK = """\
link
    The function of the mean that is predicted: ``"log"``, the formula above, or, for positive
    predictions (include a constant){}.
"""
_RETURNS_AND_RAISES = """\
Returns
-------
LossTerm
    A term of the goal; terms are added, and multiplied by positive numbers.

Raises
------
DataError
    When shapes disagree, an entry is NaN or infinite, a weight is negative, or the target is not
    of the kind that the loss needs (numbers, counts, labels).
ModelError
    When ``prediction`` is no affine expression, or a parameter or ``reduction`` is unknown.
"""


def _description(kind: type[DataFit], links: Links) -> str:
    """Return the docstring of a function, from that of its class."""
    lead, *parts = re.split(r"^(\w+)\n-+\n", getdoc(kind) or "", flags=re.MULTILINE)
    sections = dict(zip(parts[::2], (text.strip("\n") for text in parts[1::2]), strict=True))
    introduction, bullet, facts = lead.partition("\n* ")
    residual = _RESIDUAL if issubclass(kind, OfDifference) and kind.even else ""
    parameters = _PREDICTION.format(_TARGETS[kind.target_kind].format(residual))
    if "Parameters" in sections:
        parameters += sections["Parameters"] + "\n"
    if links:
        parameters += _LINK.format("".join(_links(links)))
    text = [
        re.sub(r"^The ", "Return the mean (or sum) of the ", introduction.strip()),
        _section("Parameters", parameters + _SHARED),
        _RETURNS_AND_RAISES,
        _section("Notes", (bullet + facts).strip()),
        *(
            _section(name, sections[name])
            for name in ("References", "Examples")
            if name in sections
        ),
    ]
    return "\n\n".join(part.strip("\n") for part in text) + "\n"


def _section(name: str, text: str) -> str:
    return f"{name}\n{'-' * len(name)}\n{text}"


def _links(links: Links) -> list[str]:
    """Return the formula of every link, and where its conjugate is described."""
    shown = []
    for name, loss in links.items():
        if not isinstance(loss, str):
            formula = re.search(r":math:`\\ell\(u; y\) = (.*?)`", getdoc(loss) or "")
            shown.append(
                f',\n    ``"{name}"`` for :math:`{formula[1] if formula else ""}` '
                f"(:class:`~sparsemodel.losses.{loss.__name__}`)"
            )
    return shown
