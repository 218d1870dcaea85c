"""Sparse precision matrices as covariance estimators."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsemodel.compiler.choice.dispatch import backend_for
from sparsemodel.compiler.choice.effort import checked_effort
from sparsemodel.designs.tables.frames import in_memory, refuse_times
from sparsemodel.interfaces import FloatArray, IntArray, Role
from sparsemodel.interfaces.numeric import whole_number
from sparsemodel.modelling import (
    Parameter,
    Problem,
    Variable,
    card,
    gaussian_nll,
    minimize,
    offdiag,
)
from sparsemodel.selection.choice import at_the_end, chosen_cell
from sparsemodel.sklearn._chosen import between, usual_ks
from sparsemodel.sklearn._declared import candidates_of, seed_of, splitter
from sparsemodel.sklearn._elsewhere import check_parameters, rejects_unknown_parameters

if TYPE_CHECKING:
    from sparsemodel.certificates import PrecisionCertificate


class _Precision(EmpiricalCovariance):  # type: ignore[misc]
    """What both estimators do."""

    precision_: FloatArray
    covariance_: FloatArray
    location_: FloatArray
    edges_: IntArray
    n_iter_: int
    objective_: float
    certificate_: PrecisionCertificate
    n_edges_: int
    candidates_: IntArray
    scores_: FloatArray
    best_score_: float

    store_precision = True
    # EmpiricalCovariance checks its own parameters; the language checks ours, with better words.
    _parameter_constraints: dict[str, Any] = {}  # noqa: RUF012  (scikit-learn's convention)

    def __new__(cls, *_args: Any, **kwargs: Any) -> Self:
        """Refuse a parameter that there is not, with what to write for it."""
        check_parameters(cls, kwargs, graph=True)
        made: Self = super().__new__(cls)
        return made

    @rejects_unknown_parameters
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : ignored
            For scikit-learn's conventions.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fitted(X, {})

    def _fitted(self, X: Any, to_split: dict[str, Any]) -> Self:
        X = in_memory(X, "X")
        refuse_times(X, "X")
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        problem, omega, k = self._problem(X)
        solution = self._solve(problem, k, self._choose_edges(X, to_split))
        p = X.shape[1]
        self.location_ = np.zeros(p) if self.assume_centered else X.mean(axis=0)
        self._keep(omega.value)
        self.edges_ = np.argwhere(np.triu(self.precision_, 1) != 0.0)
        self.n_iter_ = solution.iterations
        self.objective_ = solution.value
        if self.certify:
            self.certificate_ = cast("PrecisionCertificate", problem.certify())
        elif hasattr(self, "certificate_"):
            del self.certificate_  # of an earlier fit
        return self

    def graph(self) -> Any:
        """Return the dependences as a ``networkx.Graph``, partial correlations as weights."""
        from sparsemodel.reporting.graphs import precision_graph

        check_is_fitted(self)
        return precision_graph(self.precision_, getattr(self, "feature_names_in_", None))

    @abstractmethod
    def _choose_edges(self, X: Any, to_split: dict[str, Any]) -> Any:
        """Return how many edges to take at most; folds are split by what is given besides."""

    def _problem(self, X: Any) -> tuple[Problem, Variable, Parameter]:
        """Return the problem, its matrix and the number of edges, for all numbers alike."""
        p = X.shape[1]
        omega = Variable((p, p), symmetric=True, name="Omega")
        k = Parameter(integer=True, nonneg=True, name="edges", value=0)
        constraints: list[Any] = [card(offdiag(omega)) <= 2 * k]
        if self.min_eigenvalue is not None:
            constraints.append(omega >> self.min_eigenvalue)
        if self.max_eigenvalue is not None:
            constraints.append(omega << self.max_eigenvalue)
        deviations = X if self.assume_centered else X - X.mean(axis=0)
        n = X.shape[0]
        S = deviations.T @ deviations / n
        likelihood = gaussian_nll(omega, S, samples=n, shrinkage=self.shrinkage)
        return Problem(minimize(likelihood), constraints), omega, k

    def _solve(
        self, problem: Problem, k: Parameter, edges: Any, *, warm: bool = False, quick: bool = False
    ) -> Any:
        """Solve with at most so many edges, from the last solution if warm.

        If quick, one search replaces the several that the compiler would run.
        """
        p = self.n_features_in_
        edges = whole_number(edges, where="edges", minimum=0, maximum=None)
        k.value = min(edges, p * (p - 1) // 2)
        return problem.solve(
            backend_for(Role.COMPARISON, problem.form)
            if quick and self.backend is None
            else self.backend,
            start="value" if warm else None,
            seed=self._seed(),
            effort=checked_effort(self.effort),
            time_limit=self.time_limit,
            verbose=bool(self.verbose),
        )

    def _seed(self) -> int:
        """Return a seed from ``random_state``; None is a fixed one."""
        return seed_of(self.random_state)

    def _keep(self, omega: FloatArray) -> None:
        self.precision_ = np.array(omega)
        inverse = np.linalg.inv(self.precision_)
        self.covariance_ = (inverse + inverse.T) / 2.0


@dataclass(eq=False, repr=False)
class _Options(_Precision):
    """The parameters that both have."""

    _: KW_ONLY
    min_eigenvalue: float | None = None
    max_eigenvalue: float | None = None
    shrinkage: float = 0.0
    assume_centered: bool = False
    backend: Any = None
    effort: str = "medium"
    time_limit: float | None = None
    certify: bool = False
    random_state: Any = None
    verbose: bool = False


@dataclass(eq=False, repr=False)
class SparsePrecision(_Options):
    r"""Gaussian with at most ``edges`` conditional dependences between its variables.

    Minimises :math:`-\log\det\Omega + \mathrm{tr}(S\Omega)`, with ``S`` the covariance of the
    samples, over precision matrices :math:`\Omega` with at most ``edges`` nonzero pairs off the
    diagonal and eigenvalues between ``min_eigenvalue`` and ``max_eigenvalue``.

    Parameters
    ----------
    edges : int, default=10
        The maximum number of edges. A value larger than the number of pairs is no constraint.
    min_eigenvalue, max_eigenvalue : float, default=None
        Bounds on the eigenvalues; None is a safe default that depends on ``S``.
    shrinkage : float, default=0.0
        Shrinkage of the covariance towards its diagonal, in [0, 1); useful with few samples.
    assume_centered : bool, default=False
        Whether to assume a mean of zero.
    backend : str or Backend, default=None
        See ``sm.available_backends()``; None lets the compiler choose.
    effort : {"low", "medium", "high"}, default="medium"
        How long the search continues without improvement.
    time_limit : float, default=None
        Seconds after which the best matrix so far is taken.
    certify : bool, default=False
        Compute ``certificate_`` when fitting.
    random_state : int, RandomState instance or None, default=None
        Seed of randomised backends; None is a fixed seed.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        The matrix, zero where there is no edge.
    covariance_ : ndarray of shape (n_features, n_features)
        Its inverse.
    location_ : ndarray of shape (n_features,)
        The mean.
    edges_ : ndarray of shape (n_edges, 2)
        Pairs ``i < j`` of variables that are connected by an edge.
    objective_ : float
        The objective of the fitted model.
    certificate_ : PrecisionCertificate
        With ``certify=True``: a lower bound on the objective of every matrix with at most
        ``edges`` edges, computed without branch and bound.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparsePrecision
    >>> X = np.random.default_rng(0).standard_normal((500, 5))
    >>> X[:, 4] += X[:, 1]
    >>> SparsePrecision(edges=1).fit(X).edges_
    array([[1, 4]])
    """

    edges: int = 10

    def _choose_edges(self, X: Any, to_split: dict[str, Any]) -> Any:
        return self.edges


@dataclass(eq=False, repr=False)
class SparsePrecisionCV(_Options):
    """Gaussian whose number of conditional dependences is cross-validated.

    Like :class:`SparsePrecision`; the score is the held-out log-likelihood per sample. Every fold
    is solved for the candidates in increasing order, each from the previous solution.

    Parameters
    ----------
    candidates : array-like of int, default=None
        Numbers of edges to try. None takes the Fibonacci numbers up to 89, the number of pairs, or
        ``n_samples * n_features / 4`` (a variable then has, on average, half as many edges as there
        are samples), whichever is least, and afterwards a few between the neighbours of the best.
    cv : int, cross-validation generator or iterable, default=None
        The splitter; an integer is a number of shuffled folds, None means five.
    one_standard_error : bool, default=False
        Take the fewest edges within one standard error of the best mean score.
    n_jobs : int, default=None
        The number of folds that run in parallel.
    **others
        As for :class:`SparsePrecision`.

    Attributes
    ----------
    n_edges_ : int
        The chosen candidate; the matrix itself is then fitted on all samples.
    candidates_ : ndarray of shape (n_candidates,)
        The candidates, increasing.
    scores_ : ndarray of shape (n_folds, n_candidates)
        Log-likelihoods per sample on the held-out folds; greater is better.
    best_score_ : float
        The mean score of the chosen candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsemodel.sklearn import SparsePrecisionCV
    >>> X = np.random.default_rng(0).standard_normal((500, 5))
    >>> X[:, 4] += X[:, 1]
    >>> SparsePrecisionCV([0, 1, 5], one_standard_error=True).fit(X).n_edges_
    1
    """

    candidates: Any = None
    _: KW_ONLY
    cv: Any = None
    one_standard_error: bool = False
    n_jobs: Any = None

    @rejects_unknown_parameters
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose the number of edges and fit the matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : ignored
            For scikit-learn's conventions.
        **params : dict
            ``groups`` of the samples, for splitters that keep groups together; with
            scikit-learn's metadata routing whatever the splitter requests.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        _raise_for_params(params, self, "fit", allow=["groups"])
        if _routing_enabled():
            params = dict(process_routing(self, "fit", **params).splitter.split)
        return self._fitted(X, params)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is passed on to the splitter.

        Returns
        -------
        routing : MetadataRouter
            As scikit-learn describes it.
        """
        return MetadataRouter(owner=self).add(
            splitter=splitter(self.cv, 0),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )

    def _choose_edges(self, X: Any, to_split: dict[str, Any]) -> Any:
        n, p = X.shape
        pairs = p * (p - 1) // 2
        # Each variable is regressed on its neighbours: up to half of the samples, on average.
        ks = candidates_of("candidates", self.candidates, usual_ks(n * p / 2, pairs))
        folds = list(splitter(self.cv, self._seed()).split(X, **to_split))
        scores = self._scores(X, folds, ks, ks)
        if self.candidates is None:
            more = between(ks, self._chosen(scores, null=False))
            if more.size:
                found = self._scores(X, folds, more, np.union1d(more, ks[ks < more[-1]]))
                order = np.argsort(np.concatenate([ks, more]))
                ks = np.concatenate([ks, more])[order]
                scores = np.concatenate([scores, found], axis=1)[:, order]
        place = self._chosen(scores, null=bool(ks[0] == 0))
        self.candidates_, self.scores_, self.n_edges_ = ks, scores, int(ks[place])
        self.best_score_ = float(scores.mean(axis=0)[place])
        said = at_the_end(ks.tolist(), place, by="cross-validation", units=pairs)
        if said is not None:
            warnings.warn(said, stacklevel=4)
        return self.n_edges_

    def _chosen(self, scores: FloatArray, *, null: bool) -> int:
        """Return the place of the best candidate."""
        losses = -scores[:, :, np.newaxis]
        return chosen_cell(losses, one_standard_error=self.one_standard_error, null=null)[0]

    def _scores(self, X: Any, folds: list[Any], ks: IntArray, along: IntArray) -> FloatArray:
        """Return the scores of ``ks`` on each fold; solutions follow one another ``along``."""
        work = (delayed(self._fold)(X, along, *parts) for parts in folds)
        return np.array(Parallel(n_jobs=self.n_jobs)(work))[:, np.isin(along, ks)]

    def _fold(self, X: Any, candidates: IntArray, train: Any, test: Any) -> list[float]:
        """Return the log-likelihood per held-out sample for each candidate."""
        mean = np.zeros(X.shape[1]) if self.assume_centered else X[train].mean(axis=0)
        held_out = X[test] - mean
        S = held_out.T @ held_out / len(test)
        problem, omega, k = self._problem(X[train])
        scores = []
        for j, edges in enumerate(candidates):
            self._solve(problem, k, edges, warm=j > 0, quick=True)
            matrix = omega.value
            nll = np.sum(S * matrix) - np.linalg.slogdet(matrix)[1]
            scores.append(float(-0.5 * (nll + X.shape[1] * np.log(2.0 * np.pi))))
        return scores
