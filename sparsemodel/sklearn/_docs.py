"""The parts of the estimators' docstrings that are the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from textwrap import dedent
from typing import TypeVar

T = TypeVar("T", bound=type)

_K = """\
    k : int, default=10
        At most this many features (groups, with ``groups``) have a nonzero coefficient. More than
        there are is no constraint.
    ridge : float, default=1e-3
        :math:`\\lambda \\ge 0` of :math:`\\tfrac\\lambda2 \\sum_j s_j^2 w_j^2`, with ``s_j`` the
        standard deviation of column ``j`` (to three digits; its root mean square without an
        intercept), so that units do not matter; coefficients are in those of the columns. Beside
        Huber's, pinball and other losses of residuals that are no squares it is multiplied by
        :math:`\\tfrac4\\pi L / d^2`, with ``d`` the mean distance of the target from its median
        and ``L`` the mean loss there, and beside a logarithmic link by the curvature at the mean
        (of counts their mean), so that the target's unit does not matter either. Bounds
        and certificates need it positive where there are more features than samples.
"""

_INTERCEPT = """\
    fit_intercept : bool, default=True
        Fit a constant, which is neither penalised nor counted.
"""

_OPTIONS = """\
    plain_ridge : bool, default=False
        Take ``s_j = 1``, whatever the loss.
    positive : bool, default=False
        Allow no negative coefficients.
    bounds : tuple, default=None
        The least and the largest coefficients, ``(lower, upper)``: numbers, arrays of shape
        (n_features,), or None for no bound. A coefficient of zero must be within.
    groups : array-like of shape (n_features,), default=None
        A label per feature; features with one label are selected together and count once.
    always : array-like, default=None
        Features that are in every model and not counted: their names, their numbers, or a mask.
    backend : str or Backend, default=None
        See ``sm.available_backends()``; None lets the compiler choose.
    effort : {{"low", "medium", "high"}}, default="{effort}"
        How long {search}.
    time_limit : float, default=None
        Seconds after which {ending}.
    certify : bool, default=False
        Compute ``certificate_`` when fitting.
    random_state : int, RandomState instance or None, default=None
        {seeds}; None is a fixed seed.
    verbose : bool, default=False
        Show progress on standard error.
"""

_CHOICE = """\
    ks : array-like of int, default=None
        The candidates for ``k``. None takes the Fibonacci numbers from 0 up to half of the samples,
        the features or 89, and afterwards a few between the neighbours of the best.
    ridges : float or array-like of float, default=None
        The candidates for ``ridge``, chosen together with ``k``; None takes 0.001, 0.1 and 1. One
        number keeps it there. See ``ridge`` of the estimator with a given ``k``.
    cv : int, cross-validation generator or iterable, default=None
        How to split; a number is so many shuffled folds (stratified for classes and by events),
        None five.
    scoring : str or callable, default=None
        A scorer of scikit-learn's; None is minus the mean loss that is minimised, without ridge.
        Weights of samples are passed on to scorers that take them, those of classes never.
    one_standard_error : bool, default=False
        Take the smallest candidate, and of its ridges the largest, within one standard error of
        the best mean score: smaller models that predict less well. In any case 0 is left only where
        held-out losses fall from there towards the average candidate, in a t test over the samples
        at 10 %; with ``groups``, a scorer, or a loss that couples samples, the best candidate is
        compared with 0 over the folds, at 5 %.
    n_jobs : int, default=None
        Folds worked on at the same time.
"""

CLASS_WEIGHT = """\
    class_weight : dict or 'balanced', default=None
        Weights of the classes, multiplied with those of the samples; ``'balanced'`` gives every
        class the same total.
"""

_GIVEN = _OPTIONS.format(
    effort="medium",
    search="the search goes on in vain",
    ending="the best model so far is taken",
    seeds="Of backends that draw random numbers",
)
_CHOSEN = _OPTIONS.format(
    effort="low",
    search="each ``k`` is searched on its own (as in ``Problem.path``), in folds and fit alike",
    ending="a fold, or the fit, takes the largest model so far for every larger ``k``",
    seeds="Of the folds, and of backends that draw random numbers",
)

PARAMETERS = _K + _INTERCEPT + _GIVEN
PARAMETERS_COX = _K + _GIVEN

_FITTED = """\
    objective_ : float
        The minimised function at the model.
    certificate_ : Certificate
        With ``certify=True``: the best lower bound on it for every model with ``k`` features that
        there is without branching, and what is proved.
    n_iter_ : int
        Iterations of the backend.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when ``X`` had them all as strings.
"""

REGRESSOR = f"""\
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Zero outside the support; one row per target where there are several.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant, zero where none is fitted.
{_FITTED}"""

CLASSIFIER = f"""\
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Zero outside the support; one row for two classes, a row per class for more.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The constants.
{_FITTED}"""

_FOUND = """\
    k_ : int
        The chosen candidate; the model itself is then fitted on all samples.
    ridge_ : float
        The same of the ridge.
    ks_ : ndarray
        The candidates, increasing.
    ridges_ : ndarray
        The same of the ridge.
    scores_ : ndarray of shape (n_folds, n_ks)
        Scores on the held-out folds with the chosen ridge; greater is better.
    all_scores_ : ndarray of shape (n_folds, n_ks, n_ridges)
        Those with every ridge.
    best_score_ : float
        The mean score of ``k_`` and ``ridge_``, folds weighted by their samples' weights.
    **others
        As for the estimator with a given ``k``.
"""


def filled(**parts: str) -> Callable[[T], T]:
    """Return a decorator that puts ``parts`` in the place of ``<name>`` lines of a docstring."""

    def fill(cls: T) -> T:
        text = cleandoc(cls.__doc__ or "")  # None when Python runs without docstrings
        for name, part in parts.items():
            text = text.replace(f"<{name}>\n", dedent(part))
        cls.__doc__ = text
        return cls

    return fill


def cross_validated(given: type) -> Callable[[T], T]:
    """Return a decorator that completes the docstring of an estimator that chooses its ``k``.

    The first line, remarks and examples are its own. The parameters are those of ``given``, the
    estimator with a given ``k``, but for what is chosen.
    """

    def write(cls: T) -> T:
        title, _, rest = cleandoc(cls.__doc__ or "").partition("\n")
        remarks, examples, code = rest.partition("Examples\n")
        remarks = f"{remarks.rstrip()}\n" if remarks.strip() else ""
        own = cleandoc(given.__doc__ or "").partition("----------\n")[2]
        parameters = own.partition("\nAttributes")[0]
        for part, chosen in ((_K, _CHOICE), (_GIVEN, _CHOSEN)):
            parameters = parameters.replace(dedent(part), dedent(chosen))
        cls.__doc__ = f"""{title}

It minimises what :class:`{given.__name__}` does. Every fold solves for the
candidates along ``k``, and each ridge from the solutions with the one before.
{remarks}
Parameters
----------
{parameters}
Attributes
----------
{dedent(_FOUND)}
{examples}{code}""".rstrip()
        return cls

    return write
