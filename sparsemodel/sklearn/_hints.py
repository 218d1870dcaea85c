"""What to write in place of names that other estimators have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

from sklearn.utils.metadata_routing import _routing_enabled

from sparsemodel.arguments import refuse_argument

R = TypeVar("R")

PARAMETERS = {
    "C": "shrinkage is `ridge=`",
    "always_select": "features that are always in are `always=`",
    "alpha": "shrinkage is `ridge=`, and the number of features `k=`",
    "alphas": "the ridges to try are `ridges=`, and the numbers of features `ks=`",
    "Cs": "the ridges to try are `ridges=`, and the numbers of features `ks=`",
    "class_weight": "give sample_weight to fit()",
    "cv": "k and the ridge are chosen by the estimator with CV behind its name",
    "epsilon": "where a Huber loss becomes linear is `delta=`",
    "fit_intercept": "the baseline hazard of a Cox model takes the place of an intercept",
    "l1_ratio": "the number of features is `k=`, shrinkage `ridge=`",
    "loss": "it has one; SparseGeneralizedRegression takes any loss",
    "lower": "bounds on coefficients are `bounds=(lower, upper)`",
    "max_iter": "how long it searches is `effort=`, `time_limit=` at most",
    "n_features_to_select": "the number of features is `k=`",
    "n_jobs": "threads are set by sparsemodel.config",
    "n_nonzero_coefs": "the number of features is `k=`",
    "normalize": "units do not matter to the ridge; put a StandardScaler before it for others",
    "support_size": "the number of features is `k=`",
    "tol": "how long it searches is `effort=`, `time_limit=` at most",
    "upper": "bounds on coefficients are `bounds=(lower, upper)`",
    "penalty": "the number of features is `k=`, shrinkage `ridge=`",
}
"""What to write in place of parameters of other estimators."""

ATTRIBUTES = {
    "bound_": "fit with certify=True and read certificate_.bound",
    "feature_importances_": "coefficients are in coef_; their units are those of the features",
    "pvalues": "the data that chose the features give none; fit them on other data",
    "selected_features_": "write get_feature_names_out(), or get_support(indices=True)",
    "summary": "write score(X, y); sm.Problem(...).solve().summary() has more measures",
    "support_": "write get_support()",
}
"""What to write in place of attributes of other estimators."""

_OFFSET = (
    "estimators have no offsets; write `sm.Problem(sm.minimize(loss + sm.ridge(w, lam)), "
    "sm.card(w) <= k)` with the offset in the prediction, `A @ w + c + offset`"
)
_EXPOSURE = (
    "SparsePoissonRegression takes rates: `fit(X, y / exposure, sample_weight=exposure)`; "
    "for other losses " + _OFFSET
)
_SURVIVAL = "SparseCoxRegression takes both as columns of y: `np.column_stack([time, event])`"
_DATA = {
    **dict.fromkeys(("exposure", "exposures"), _EXPOSURE),
    **dict.fromkeys(("base_margin", "init_score", "offset", "offsets"), _OFFSET),
    **dict.fromkeys(("duration", "event", "events", "time"), _SURVIVAL),
    **dict.fromkeys(("freq_weights", "weight", "weights"), "weights are `sample_weight=`"),
    "class_weight": "give sample_weight, a weight for each sample",
    "feature_names": "a data frame X has names",
    "groups": "groups of features are an argument of the estimator, `groups=`",
    "k": "k is an argument of the estimator",
    "strata": "SparseCoxRegression takes them as a third column of y",
    **dict.fromkeys(
        ("entry", "start", "stop"),
        "SparseCoxRegression takes them in y: `np.column_stack([start, stop, event])`",
    ),
}
"""What to write in place of data that other estimators take."""


_GRAPH = {
    "alpha": "the number of edges is `edges=`; a bound on the eigenvalues is `min_eigenvalue=`",
    "alphas": "the numbers of edges to try are `candidates=` of SparsePrecisionCV",
    "beta": "a bound on the eigenvalues is `max_eigenvalue=`",
    **dict.fromkeys(("k", "n_edges", "max_edges"), "the number of edges is `edges=`"),
    **dict.fromkeys(("lam", "lambda_", "penalty", "reg", "rho"), "the number of edges is `edges=`"),
    **{name: PARAMETERS[name] for name in ("max_iter", "n_jobs", "tol")},
    "assume_centred": "it is spelt `assume_centered=`, as in scikit-learn",
}
"""What to write in place of parameters of other estimators of graphs."""


def check_parameters(model: type[Any], given: Iterable[str], *, graph: bool = False) -> None:
    """Refuse a parameter that the estimator has not, with what to write for it."""
    known = [field.name for field in fields(model)]
    for name in given:
        if name not in known:
            refuse_argument(name, known, model.__name__, _GRAPH if graph else PARAMETERS)


def rejects_unknown_parameters(method: Callable[..., R]) -> Callable[..., R]:
    """Return a method of estimators that says what to write for data that it does not take."""
    parameters = inspect.signature(method).parameters
    known = [name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD]
    passed_on = len(known) < len(parameters)
    hints = _DATA if "sample_weight" in known else {}

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> R:
        for name in kwargs:
            routed = passed_on and (name == "groups" or name not in hints or _routing_enabled())
            if name not in known and not routed:
                refuse_argument(name, known, f"{type(self).__name__}.{method.__name__}", hints)
        return method(self, *args, **kwargs)

    return called
