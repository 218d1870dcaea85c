"""Calls with arguments that a function does not have: errors that say what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Signature, signature
from typing import Any, NoReturn, ParamSpec, TypeVar

from sparsemodel.interfaces import DataTypeError
from sparsemodel.interfaces.errors import closest

P = ParamSpec("P")
R = TypeVar("R")

_BOUND = "write it as a constraint: `w >= 0`, `w <= 1`"
_BACKEND = "name the algorithm with `backend=`; sm.available_backends() lists them"
_SURVIVAL = "the target has two columns: `np.column_stack([time, event])`"
_WEIGHTS = "observations are weighted by `weights=`, an array with a number for each of them"
_LEVEL = "the level is `tau=`"
_ARGUMENTS = {
    "always": "do not count the entries that are always in the model: sm.card(w[3:]) <= k",
    "alpha": "add the ridge to the objective: `+ sm.ridge(w, lam)`",
    "boolean": "constrain the nonzero entries with sm.card(w) and sm.chosen(w)",
    **dict.fromkeys(("bounds", "lb", "neg", "nonpos", "ub"), _BOUND),
    **dict.fromkeys(("NSD", "PSD"), "write `symmetric=True`; `W >> 0` is a constraint"),
    "M": "the residual from which a Huber loss is linear is `delta=`",
    "objective": "the goal comes first: `sm.Problem(sm.minimize(loss), sm.card(w) <= k)`",
    "pos": "write `nonneg=True`; a bound that excludes zero is `w >= 0.1`",
    "rows": "rows of a matrix variable are counted with `axis=1`",
    "dispersion": "the variance is mean + mean^2 / theta: `theta=1 / dispersion`",
    **dict.fromkeys(("time", "durations", "event", "events", "event_observed"), _SURVIVAL),
    "epsilon": "the residual from which a Huber loss is linear is `delta=`",
    "class_weight": _WEIGHTS + ": `weights=np.where(y == 1, 2.0, 1.0)`",
    "exposure": "exposures are an offset of the prediction: `A @ w + c + np.log(exposure)`",
    "fit_intercept": "add a variable for the intercept: `A @ w + c` with `c = sm.Variable()`",
    "integer": "the values of variables are real numbers; only the nonzero entries are selected",
    "k": "the limit is a constraint, `sm.card(w) <= k`",
    "link": "it has one link; sm.poisson_loss has log, identity and sqrt, sm.gamma_loss log and "
    "inverse. Others are not convex, or a sm.custom_loss",
    "offset": "add it to the prediction: `A @ w + offset`",
    "quantile": _LEVEL,
    **dict.fromkeys(("solver", "method", "algorithm"), _BACKEND),
    **dict.fromkeys(("timeout", "max_time", "TimeLimit"), "write `time_limit=`, in seconds"),
    **dict.fromkeys(
        ("tol", "tolerance", "eps"),
        "`effort=` says how long it searches, and "
        "problem.prove(gap=...) how close to the optimum it ends",
    ),
    **dict.fromkeys(("random_state", "random_seed"), "write `seed=`"),
    **dict.fromkeys(("n_jobs", "n_threads", "threads"), "write `sm.config.threads = 4` before"),
    "sample_weight": _WEIGHTS,
    **dict.fromkeys(
        ("freq_weights", "frequency_weights", "fweights"),
        'write `weights=` with `weights_are="frequency"`',
    ),
    **dict.fromkeys(("var_weights", "aweights"), "write `weights=`, which are precisions"),
    **dict.fromkeys(
        ("sampling_weights", "pweights", "survey_weights"),
        'write `weights=` with `weights_are="sampling"`',
    ),
    **dict.fromkeys(
        ("entry", "start_time", "stop"),
        "delayed entry is in the target: `np.column_stack([start, stop, event])`",
    ),
    "strata": "they are a third column of the target: `np.column_stack([time, event, stratum])`",
}
"""What to write in place of arguments that functions of this language have not."""
_ARGUMENTS_OF = {
    ("sm.gaussian_nll", "alpha"): "limit the edges by a constraint, "
    "`sm.card(sm.offdiag(Omega)) <= 2 * k`",
    ("sm.negative_binomial_loss", "alpha"): _ARGUMENTS["dispersion"],
    **{("sm.quantile_loss", name): _LEVEL for name in ("alpha", "level", "percentile", "q")},
    ("solution.predict", "newoffset"): "that of new rows is `offset=`",
}
_ARGUMENTS_OF_PLOTS = {"ax": "write `axes=`"}
_ARGUMENTS_OF_DATA = {
    "as_frame": "write `pd.DataFrame(data.X, columns=data.feature_names)`",
    "return_X_y": "the arrays are `data.X` and `data.y`",
}
_PLACES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("sparsemodel.reporting.plots.", "plots.", _ARGUMENTS_OF_PLOTS),
    ("sparsemodel.datasets.", "sm.datasets.", _ARGUMENTS_OF_DATA),
    ("sparsemodel.certificates.", "", {}),
    ("", "sm.", _ARGUMENTS),
)
"""Of modules what their functions are called with, and what to write in place of arguments."""
_OBJECTS = {
    **dict.fromkeys(("CertificateFrame", "PrecisionCertificate"), "certificate"),
    "Declaration": "problem",
    "Fitted": "solution",
}
"""What objects are called whose class a user does not write."""
_POSITIONS = {
    "sm.cox_loss": "Times, events and strata are columns: `np.column_stack([time, event])`.",
    "sm.Variable": "The shape of a matrix is a tuple, `sm.Variable((p, m))`.",
    "sm.Parameter": "The shape of a matrix is a tuple, `sm.Parameter((n, p))`.",
}
"""What to write in place of more values than there are places."""


def rejects_unknown_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with an error that says what to write for an argument it has not."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            begun = error.__traceback__
            if begun is None or begun.tb_next is not None:  # raised by what it does
                raise
        what, elsewhere = _called(function)
        refuse_call(what, signature(function), args, kwargs, elsewhere)
        return function(*args, **kwargs)  # Python says what is wrong

    return called


def refuse_call(
    what: str,
    expected: Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    elsewhere: Mapping[str, str] = _ARGUMENTS,
) -> None:
    """Raise the error about arguments that ``what``, of this signature, cannot be called with."""
    by_place = [p for p in expected.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in by_place if p.name != "self"]
    by_name = [p.name for p in expected.parameters.values() if p.kind is p.KEYWORD_ONLY]
    has_more = any(p.kind is p.VAR_POSITIONAL for p in expected.parameters.values())
    known = [p.name for p in by_place] + by_name
    selves = len(by_place) - len(named)
    if not kwargs.keys() <= set(known):
        refuse_argument(next(name for name in kwargs if name not in known), known, what, elsewhere)
    if len(args) > len(by_place) and not has_more:
        others = ", ".join(f"`{name}=`" for name in by_name)
        hint = _POSITIONS.get(what, f"Give the others by name: {others}." if others else "")
        takes = f"{', '.join(named) or 'nothing'} by position"
        given = f"{len(args) - selves} values were given"
        raise DataTypeError(f"{what} takes {takes}, and {given}. {hint}".rstrip())
    needed = [p.name for p in by_place if p.name != "self" and p.default is p.empty]
    missing = [name for name in needed[max(len(args) - selves, 0) :] if name not in kwargs]
    if missing:
        raise DataTypeError(f"{what}({', '.join(needed)}) needs {' and '.join(missing)}.")


def _called(function: Callable[..., object]) -> tuple[str, Mapping[str, str]]:
    """Return how a user calls a function, and what to write in place of its arguments."""
    _, prefix, elsewhere = next(
        place for place in _PLACES if f"{function.__module__}.".startswith(place[0])
    )
    owner, _, name = function.__qualname__.removesuffix(".__init__").rpartition(".")
    if owner:
        return f"{_OBJECTS.get(owner, owner.lower())}.{name}", elsewhere
    return prefix + name, elsewhere


def refuse_argument(
    name: str, known: Iterable[str], what: str, elsewhere: Mapping[str, str] = _ARGUMENTS
) -> NoReturn:
    """Raise an error that says what to write for an argument that there is not.

    ``elsewhere`` has what to write by the name that other packages have for it.
    """
    listed = [one for one in known if one != "self"]
    close = closest(name, listed)
    hint = f"is {close!r} meant?" if close else f"it has {', '.join(listed) or 'none'}."
    if (what, name) in _ARGUMENTS_OF:
        raise DataTypeError(f"{what} has no argument {name!r}; {_ARGUMENTS_OF[what, name]}.")
    wished = name if name in elsewhere else closest(name, () if close else elsewhere, cutoff=0.8)
    hint = f"{elsewhere[wished]}." if wished else hint
    raise DataTypeError(f"{what} has no argument {name!r}; {hint}")
