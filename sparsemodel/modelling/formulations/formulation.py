"""What a form of problem says of itself: the one object that is registered for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from sparsemodel.compiler.canonical.layout import VariableLayout
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.driver import Outcome, ShortProof
from sparsemodel.interfaces import (
    BoolArray,
    Cardinality,
    CertificateError,
    FloatArray,
    Form,
    IntArray,
    ModelError,
    Objective,
    RestrictedSolver,
    UnsupportedProblemError,
    Work,
)
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.results.summary import Summary
from sparsemodel.modelling.run_options import within
from sparsemodel.numerics import minimise_restricted
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.path import PathPoint, PathResult, Search
from sparsemodel.selection.searched_path import searched_path

if TYPE_CHECKING:
    from sparsemodel.certificates.theory import Theory


class Answer(NamedTuple):
    """A point in the terms of the declaration."""

    indices: IntArray
    """Sorted indices of the nonzero counted entries (rows), within their variable."""
    support_names: tuple[Any, ...] | None
    """Their names, if they have any."""
    coefficients: dict[str, float | FloatArray]
    """Nonzero coefficients by name, uncounted ones (the intercept) included."""
    values: dict[str, Any]
    """Each variable's value by its label."""

    @property
    def support(self) -> Any:
        """Return the names of the nonzero counted entries, or their indices if unnamed."""
        return self.indices if self.support_names is None else list(self.support_names)


class ProofRequest(NamedTuple):
    """What is asked of a proof."""

    gap: float
    """Relative gap to reach."""
    time_limit: float | None
    """Seconds; None for no limit."""
    show: Callable[[float, float, int, int], object]
    """Called with the objective, the bound, the numbers of nodes and of open ones; what it returns
    ends the search if it is true."""
    resume: Any = None
    """The certificate of an earlier proof to go on from."""


class CompiledProblem(ABC):
    """What a declaration was compiled to, and what a problem returns from it.

    A form needs ``form`` and ``layout``; everything else has an answer that holds for any form, or
    says that there is none.
    """

    __slots__ = ()

    form: Form
    """The canonical form, on the user's data."""
    layout: VariableLayout
    """Where the variables stand among the form's coordinates."""
    # ---- what is known -----------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """Return what ``k`` counts, in words."""
        return "nonzero coefficients"

    @property
    def counts(self) -> str:
        """Return the same behind a number."""
        return "nonzero"

    def facts(self) -> FactSheet:
        """Return what is known of the form, for ``explain()``."""
        return FactSheet()

    def analysis(self, *, reductions: bool = True) -> tuple[FactSheet, Reduced]:
        """Return the facts, and the form that backends are given: itself by default.

        And always without ``reductions``.
        """
        return self.facts(), Reduced(self.form, ())

    @property
    def stored(self) -> tuple[int | None, int]:
        """Return the bytes read from files so far, and those that one reading of all takes.

        The first is None where it is not known here, as workers load the data.
        """
        return 0, 0

    @property
    def analysed(self) -> float:
        """Return the passes over the data that the analysis has cost so far."""
        return 0.0

    @property
    def counted(self) -> BoolArray:
        """Return the coordinates whose nonzeros make the support: what the user counts."""
        return self.form.cardinality.counted

    def support(self, chosen: IntArray) -> tuple[IntArray, tuple[Any, ...] | None]:
        """Return counted coordinates as indices within their variable, and their names.

        Where several variables are counted, indices go on from one to the next, and all have names.
        """
        if len(self.layout.variables) == 1 and self.layout.variables[0].names is None:
            return chosen, None
        starts = np.array([*self.layout.starts, self.form.cardinality.size])
        owners = np.flatnonzero(np.logical_or.reduceat(self.counted, starts[:-1]))
        heights = np.diff(starts)[owners]
        shift = starts[owners] - (np.cumsum(heights) - heights)
        indices = chosen - shift[np.searchsorted(owners, _owners(starts, chosen))]
        named = any(spec.names is not None for spec in self.layout.variables)
        if owners.size < 2 and not named:
            return indices, None
        return indices, tuple(self.layout.name(j) for j in chosen.tolist())

    @property
    def nodes(self) -> tuple[str, ...] | None:
        """Return names of what the support joins, where it is the edges of a graph."""
        return None

    def answer(self, x: FloatArray) -> Answer:
        """Return a point in the terms of the declaration."""
        layout = self.layout
        nonzero = x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)
        indices, names = self.support(np.flatnonzero(nonzero & self.counted))
        heights = np.diff([*layout.starts, nonzero.size])
        nonzero &= ~np.repeat([spec.auxiliary for spec in layout.variables], heights)
        return Answer(
            indices,
            names,
            {
                layout.name(j): float(x[j]) if x.ndim == 1 else x[j].copy()
                for j in np.flatnonzero(nonzero).tolist()
            },
            {s.label: value for s, value in zip(layout.variables, layout.split(x), strict=True)},
        )

    # ---- how good a point is -----------------------------------------------------------------

    @property
    def at_hand(self) -> bool:
        """Return whether a certificate can be looked for unasked: all data are in memory."""
        return False

    def free_bound(self, outcome: Outcome) -> float:
        """Return the best lower bound that came with a run; ``-inf`` where there is none."""
        return -np.inf

    def short_proof(self, effort: Effort) -> Callable[[FloatArray], ShortProof | None] | None:
        """Return what tries a proof within a solve; None where none would be short."""
        return None

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """Return what is worth knowing about an outcome beside what the backends noted."""
        return ()

    def search_bound(self, outcome: Outcome, backend: str, seconds: float) -> tuple[Any, ...]:
        """Return what so many seconds prove: a certificate, and perhaps one of a better point."""
        with within(seconds):
            return (self.certify(outcome, backend, time_limit=seconds),)

    def certify(self, outcome: Outcome, backend: str, *, time_limit: float | None = None) -> Any:
        """Return the certificate of an outcome."""
        raise UnsupportedProblemError(f"No lower bound is known for {self.form.kind}.")

    def prove(self, outcome: Outcome, backend: str, asked: ProofRequest) -> Any:
        """Return the certificate of a search over supports; its point may be a better one."""
        raise ModelError(
            f"prove() is not for {self.form.kind}: there is no search over their supports. "
            "certify() says what is known without one."
        )

    def theory(self, outcome: Outcome) -> Theory:
        """Return restricted constants and the theorems that apply."""
        raise ModelError(f"theory() is for regressions, not for {self.form.kind}.")

    def summary(self, x: FloatArray) -> Summary:
        """Return how well a point fits the observations."""
        raise ModelError(f"summary() is for regressions, not for {self.form.kind}.")

    def restricted(self, support: Any) -> Any:
        """Return the problem on a support as a CVXPY problem."""
        raise ModelError(f"There is no CVXPY form of {self.form.kind} on a support here.")

    # ---- along k -----------------------------------------------------------------------------

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Let errors say what is known of them in the user's names."""
        yield

    def limited(self, by: Mapping[int, Cardinality]) -> CompiledProblem:
        """Return the problem whose path has the constraint ``by[k]`` at each ``k``."""
        raise ModelError(
            f"A path of {self.form.kind} follows one limit: leave the other limits (or the price) "
            "out, and end the values where they would hold."
        )

    def with_ridge(self, factor: float) -> CompiledProblem:
        """Return the problem with its ridge multiplied by a number."""
        raise ModelError(f"ridges= is for regressions, not for {self.form.kind}.")

    def path(self, ks: Sequence[int], how: Search) -> PathResult:
        """Return the solutions for each of the sorted ``ks``, by searches from neighbours."""
        return searched_path(self.form, ks, lambda _: self.facts(), how)

    def scores(self, points: Sequence[PathPoint], criterion: Criterion) -> FloatArray:
        """Return an information criterion for each point of a path; smaller is better."""
        raise ModelError(f"There are no information criteria for {self.form.kind}.")

    def most_carried(self, criterion: Criterion) -> int | None:
        """Return the largest ``k`` that an information criterion may choose; None for any."""
        return None

    def observed(self) -> Observed:
        """Return the observations, for what leaves some of them out."""
        raise ModelError(f"No observations can be left out of {self.form.kind}.")


def _owners(starts: IntArray, coordinates: IntArray) -> IntArray:
    """Return the variable of each coordinate."""
    return np.searchsorted(starts, coordinates, side="right") - 1


class Formulation(ABC):
    """A form of problem: what it recognises, what it compiles to, and what solves and checks it.

    Immutable and without state: one value serves all problems of the form.
    :func:`register_formulation` makes it known.
    """

    form: ClassVar[type[Form]]
    """The canonical form that declarations are compiled to."""

    @abstractmethod
    def recognises(self, declared: Reading) -> bool:
        """Return whether a declaration is meant for this form; quick, and without an error."""

    @abstractmethod
    def compile(self, declared: Reading, last: CompiledProblem | None) -> CompiledProblem:
        """Return the compiled declaration, for the parameters' present values.

        Parameters
        ----------
        declared
            The goal, the constraints and the variables.
        last
            What the same problem was compiled to with other values, for what can be kept.

        Raises
        ------
        ModelError, DataError, InfeasibleError
            If the problem is not a valid declaration; the message says what to change.
        """

    def objective(
        self, form: Any, gradient_at_zero: FloatArray | None = None, work: Work | None = None
    ) -> Objective:
        """Return the objective that backends minimise; it counts what it costs in ``work``."""
        raise UnsupportedProblemError(f"{type(self).__name__} does not say how it is evaluated.")

    def restricted(self, form: Any) -> RestrictedSolver:
        """Return what minimises the objective on a support: Newton's method by default."""
        return minimise_restricted

    def verify(
        self, certificate: Any, form: Any, names: Sequence[str] | None, cross_check: bool
    ) -> Any:
        """Return what was checked of a certificate, from ``form`` alone."""
        raise CertificateError(f"Nothing is certified about {form.kind}.")
