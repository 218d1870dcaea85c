"""The parts of the estimators' docstrings that are the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)

PARAMETERS = """\
    k : int, default=10
        At most this many features (groups, with ``groups``) have a nonzero coefficient. More than
        there are is no constraint.
    ridge : float, default=1e-3
        ``lam >= 0``. Columns are taken as they are: standardise them first where their units
        differ. Bounds and certificates need it positive where there are more features than
        samples.
    fit_intercept : bool, default=True
        Fit a constant, which is neither penalised nor counted.
    positive : bool, default=False
        Allow no negative coefficients.
    groups : array-like of shape (n_features,), default=None
        A label per feature; features with one label are selected together and count once.
    backend : str or Backend, default=None
        See ``sm.available_backends()``; None lets the compiler choose.
    effort : {"low", "medium", "high"}, default="medium"
        How long the search goes on in vain.
    time_limit : float, default=None
        Seconds after which the best model so far is taken.
    certify : bool, default=False
        Compute ``certificate_`` when fitting.
    random_state : int, RandomState instance or None, default=None
        Of backends that draw random numbers; None is a fixed seed.
    verbose : bool, default=False
        Show progress on standard error.
"""

CLASS_WEIGHT = """\
    class_weight : dict or 'balanced', default=None
        Weights of the classes, multiplied with those of the samples; ``'balanced'`` gives every
        class the same total.
"""

_FITTED = """\
    objective_ : float
        The minimised function at the model.
    bound_ : float
        A valid lower bound on it for every model with ``k`` features, as far as it came free with
        the fit; ``-inf`` where it did not.
    certificate_ : Certificate
        With ``certify=True``: the best bound there is without branching, and what is proved.
    n_iter_ : int
        Iterations of the backend.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when ``X`` had them all as strings.
"""

REGRESSOR = f"""\
    coef_ : ndarray of shape (n_features,)
        Zero outside the support.
    intercept_ : float
        The constant.
{_FITTED}"""

CLASSIFIER = f"""\
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Zero outside the support; one row for two classes, a row per class for more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The constants.
{_FITTED}"""

CROSS_VALIDATION = """\
    ks : array-like of int, default=None
        The candidates; None takes 15 from 1 to 50, as far as there are features.
    cv : int, cross-validation generator or iterable, default=None
        How to split; None is five folds (stratified for classes).
    scoring : str or callable, default=None
        A scorer of scikit-learn's; None is minus the mean loss that is minimised, without ridge.
    one_standard_error : bool, default=False
        Take the smallest candidate within one standard error of the best mean score.
    n_jobs : int, default=None
        Folds worked on at the same time.
    **others
        As for the estimator with a given ``k``.
"""

CROSS_VALIDATED = """\
    k_ : int
        The chosen candidate; the model itself is then fitted on all samples.
    ks_ : ndarray of shape (n_candidates,)
        The candidates, increasing.
    scores_ : ndarray of shape (n_folds, n_candidates)
        Scores on the held-out folds; greater is better.
    best_score_ : float
        The mean score of ``k_``, folds weighted by their samples' weights.
    **others
        As for the estimator with a given ``k``.
"""


def filled(**parts: str) -> Callable[[T], T]:
    """Return a decorator that puts ``parts`` in the place of ``<name>`` lines of a docstring."""

    def fill(cls: T) -> T:
        text = cls.__doc__ or ""  # None when Python runs without docstrings
        for name, part in parts.items():
            text = text.replace(f"    <{name}>\n", part)
        cls.__doc__ = text
        return cls

    return fill


__all__ = [
    "CLASSIFIER",
    "CLASS_WEIGHT",
    "CROSS_VALIDATED",
    "CROSS_VALIDATION",
    "PARAMETERS",
    "REGRESSOR",
    "filled",
]
