"""The parts of the estimators' docstrings that are the same for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from textwrap import dedent
from typing import TypeVar

T = TypeVar("T", bound=type)

_K = """\
    k : int, default=10
        The maximum number of features (groups, with ``groups``) with a nonzero coefficient. A
        value larger than the number of features is no constraint.
    ridge : float, default=1e-3
        :math:`\\lambda \\ge 0` of :math:`\\tfrac\\lambda2 \\sum_j s_j^2 w_j^2`, with ``s_j`` the
        standard deviation of column ``j`` (to three digits; its root mean square without an
        intercept), so that units of the columns do not matter; coefficients are those of the
        original columns. For losses of residuals other than the squared one (Huber, pinball, ...)
        the ridge is multiplied by :math:`\\tfrac4\\pi L / d^2`, with ``d`` the mean distance of the
        target from its median and ``L`` the mean loss there. With a logarithmic link it is
        multiplied by the curvature at the mean (for counts, by their mean). So the unit of the
        target does not matter either. With more features than samples a positive ridge gives
        tighter certificates.
"""

_INTERCEPT = """\
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is neither penalised nor counted.
"""

_OPTIONS = """\
    plain_ridge : bool, default=False
        Take ``s_j = 1`` and do not scale the ridge with the target.
    positive : bool, default=False
        Whether to forbid negative coefficients.
    bounds : tuple, default=None
        Bounds on the coefficients, ``(lower, upper)``: numbers, arrays of shape (n_features,), or
        None for no bound. They must allow zero.
    groups : array-like of shape (n_features,), default=None
        A label per feature; features with the same label are selected together and count once.
    always : array-like, default=None
        Features that are in every model and not counted: names, indices, or a mask.
    backend : str or Backend, default=None
        See ``sm.available_backends()``; None lets the compiler choose.
    effort : {{"low", "medium", "high"}}, default="{effort}"
        How long {search}.
    time_limit : float, default=None
        Seconds after which {ending}.
    certify : bool, default=False
        Compute ``certificate_`` when fitting.
    random_state : int, RandomState instance or None, default=None
        Seed {seeds}; None is a fixed seed.
    verbose : bool, default=False
        Show progress on standard error.
"""

_CHOICE = """\
    ks : array-like of int, default=None
        The candidates for ``k``. None takes the Fibonacci numbers from 0 on, as long as the best is
        among the larger half of them and up to half of the samples, the features or 89, and
        afterwards a few between the neighbours of the best.
    ridges : float or array-like of float, default=None
        The candidates for ``ridge``, chosen together with ``k``; None takes 0.001, 0.1 and 1. One
        number keeps it there. Of two the larger is taken unless the mean score with the smaller is
        better by half a standard error of the difference over the folds. See ``ridge`` of the
        estimator with a given ``k``.
    cv : int, cross-validation generator or iterable, default=None
        The splitter; an integer is a number of shuffled folds (stratified by classes and by
        events), None means five.
    scoring : str or callable, default=None
        A scorer of scikit-learn; None is minus the mean loss, without the ridge. Sample weights
        are passed to scorers that accept them, class weights are not.
    one_standard_error : bool, default=False
        Take the smallest candidate, and among its ridges the largest, within one standard error of
        the best mean score. Such a model usually predicts less well. In any case ``k = 0`` is
        chosen unless a t test at 5 % over the samples finds that held-out losses decrease from
        there towards the candidates of the largest ridge; with ``groups``, a scorer, or a loss that
        couples samples, the test compares the best candidate with 0 over the folds.
    n_jobs : int, default=None
        The number of folds that run in parallel.
    weights_are : {'precision', 'frequency', 'sampling'}, default='precision'
        What ``sample_weight`` means to the test that may choose ``k = 0`` and to the usual ``ks``:
        one over a variance, a number of equal samples, or one over the chance to be in the data.
"""

CLASS_WEIGHT = """\
    class_weight : dict or 'balanced', default=None
        Weights of the classes, multiplied with those of the samples; ``'balanced'`` gives every
        class the same total.
"""

_GIVEN = _OPTIONS.format(
    effort="medium",
    search="the search continues without improvement",
    ending="the best model so far is taken",
    seeds="of randomised backends",
)
_CHOSEN = _OPTIONS.format(
    effort="low",
    search="each ``k`` is searched on its own (as in ``Problem.path``), in folds and fit alike",
    ending="a fold, or the fit, takes the largest model so far for every larger ``k``",
    seeds="of the folds and of randomised backends",
)

PARAMETERS = _K + _INTERCEPT + _GIVEN
PARAMETERS_COX = _K + _GIVEN

_FITTED = """\
    objective_ : float
        The objective of the fitted model.
    certificate_ : Certificate
        With ``certify=True``: a lower bound on the objective of every model with ``k`` features,
        and what it proves.
    n_iter_ : int
        Iterations of the backend.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all column names of ``X`` are strings.
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
        The chosen ``k``; the final model is fitted on all samples.
    ridge_ : float
        The chosen ridge.
    ks_ : ndarray
        The candidates for ``k``, increasing.
    ridges_ : ndarray
        The candidates for the ridge, increasing.
    scores_ : ndarray of shape (n_folds, n_ks)
        Scores on the held-out folds with the chosen ridge; greater is better.
    all_scores_ : ndarray of shape (n_folds, n_ks, n_ridges)
        The scores with every ridge.
    best_score_ : float
        The mean score of ``k_`` and ``ridge_``; folds are weighted by their sample weights.
    **others
        As for the estimator with a given ``k``.
"""


_OBJECTIVE = r"""
.. math:: {} + \tfrac{{\lambda}}2 \sum_j s_j^2 w_j^2 \quad\text{{with}}\quad \|w\|_0 \le k.
"""
_MEAN = r"""Minimises, with observation weights :math:`c_i` that sum to one and
:math:`u_i = x_i^\top w + b`,
"""


def estimator(
    loss: str, *, parameters: str = PARAMETERS, attributes: str = REGRESSOR
) -> Callable[[T], T]:
    """Return a decorator that completes the docstring of an estimator with a given ``k``.

    Title, remarks, further parameters and attributes, and examples are its own. ``loss`` is the
    formula of what is minimised besides the ridge; one of ``u_i`` is averaged over observations.
    """
    objective = "Minimises\n" + _OBJECTIVE.format(loss)
    if "u_i" in loss:
        objective = _MEAN + _OBJECTIVE.format(r"\sum_i c_i\, " + loss)

    def write(cls: T) -> T:
        text = cleandoc(cls.__doc__ or "")  # None when Python runs without docstrings
        lead, *sections = re.split(r"^(\w+)\n-+\n", text, flags=re.MULTILINE)
        own = dict(zip(sections[::2], sections[1::2], strict=True))
        title, _, remarks = lead.partition("\n")
        common = {"Parameters": dedent(parameters), "Attributes": dedent(attributes)}
        parts = [title, objective, remarks]
        for name in ("Parameters", "Attributes", "Examples"):
            body = common.get(name, "") + own.get(name, "")
            parts.append(f"{name}\n{'-' * len(name)}\n{body}")
        cls.__doc__ = "\n\n".join(part.strip("\n") for part in parts if part.strip())
        return cls

    return write


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

It minimises the same objective as :class:`{given.__name__}`. Every fold is solved for all
candidates of ``k``, and for each ridge from the solutions with the previous one.
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
