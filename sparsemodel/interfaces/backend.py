"""What a backend is: a frozen value of hyper-parameters that minimises an objective.

An author writes a frozen dataclass deriving from :class:`IterativeBackend` with ``init``,
``step`` and ``stopped``; the loop around them (limits, callback, non-finite check, best so far,
Ctrl-C) is written once, here, and final.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, final

import numpy as np

from sparsemodel.interfaces.design import Access
from sparsemodel.interfaces.errors import BackendContractError, ModelError, WithNamedOptions
from sparsemodel.interfaces.events import Iteration, Stop
from sparsemodel.interfaces.forms.canonical import Form, SparseRegression
from sparsemodel.interfaces.loss.base import Loss
from sparsemodel.interfaces.loss.facets import (
    Conjugable,
    Curved,
    IntervalConjugable,
    Quadratic,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.numeric import FloatArray, IntArray, check_options
from sparsemodel.interfaces.objective import Objective, Point
from sparsemodel.interfaces.self_description import Prior, Role, Theorem


@final
@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which problems a backend can solve, as data; :meth:`objections` derives the rest."""

    forms: tuple[type[Form], ...] = (SparseRegression,)
    facets: tuple[type, ...] = ()
    """Facets every loss must inherit, e.g. ``TwiceDifferentiable``."""
    access: Access = Access.PRODUCTS
    smooth: bool = True
    """Needs a gradient everywhere."""
    lipschitz: bool = False
    """Needs a gradient with a finite global Lipschitz constant."""
    ridge: bool = False
    """Needs every counted coordinate to have a positive ridge."""
    quadratic: bool = False
    free: bool = True
    """Accepts coordinates that are always in (an intercept)."""
    groups: bool = True
    """Accepts groups of coordinates."""
    matrix: bool = True
    """Accepts matrix variables, where a coordinate is a row."""
    box: bool = False
    """Accepts bounds on the coordinates."""
    region: bool = False
    """Accepts convex constraints beside bounds: it leaves feasibility to the restricted solver,
    whose points have the value ``inf`` where the support admits none."""
    price: bool = False
    """Accepts a price per unit of support in the objective."""
    limits: bool = False
    """Keeps limits on parts of the units (:attr:`Cardinality.limits`), beside ``k``."""
    costs: bool = False
    """Weighs costs of the units' own, and keeps coordinates at zero or away from it."""
    order: bool = False
    """Keeps what may be nonzero only beside something else (:attr:`Cardinality.order`)."""
    max_coordinates: int | None = None


B = TypeVar("B", bound="Backend")


class RestrictedSolver(Protocol):
    """The service that minimises the objective on a support (debiasing)."""

    def __call__(
        self, objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        """Return the minimiser over ``support`` (sorted), started from ``start``.

        ``tol`` is relative to the gradient at zero; None means full accuracy.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """When to end early. ``deadline`` is in the clock of :func:`time.perf_counter`."""

    max_iter: int | None = None
    deadline: float | None = None

    def expired(self) -> bool:
        """Return whether the deadline has passed."""
        return self.deadline is not None and time.perf_counter() >= self.deadline


@final
@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """Everything a run needs beside the objective and the backend's own options."""

    restricted: RestrictedSolver
    limits: Limits = field(default_factory=Limits)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    start: FloatArray | None = None
    """A feasible start in the objective's coordinates; None means zero."""
    on_iterate: Callable[[Iteration], bool] | None = None
    """Returns True to end the run."""
    proof: Callable[[Point], tuple[Point, bool]] | None = None
    """Tries to prove briefly that no other support is better: returns the best point met and
    whether that is proved. None where a search goes on without."""
    starts: Callable[[], Sequence[FloatArray]] | None = None
    """Returns points that the problem without a limit on the support is rounded to, in the
    objective's coordinates; feasible, but not minimised for another objective. None where nothing
    links units or bounds them."""
    neighbourhood: Callable[[Objective, Point], Point | None] | None = None
    """Searches the units near a point together, and returns a better point or None. None where no
    constraint links units, so that exchanges of single units do as well."""

    def first_point(self, objective: Objective) -> Point:
        """Return the start as a point of ``objective``: zero where there is none."""
        return objective.origin() if self.start is None else objective.point_from(self.start)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a backend returns: a point, why it ended, and what it found on the way."""

    point: Point
    stop: Stop
    iterations: int
    history: tuple[Iteration, ...] = ()
    dual: tuple[FloatArray, ...] | None = None
    """A dual point per term, when the backend has one (used as a bound after checking)."""
    notes: tuple[str, ...] = ()
    """Facts for the user, e.g. an estimated constant."""


class Backend(WithNamedOptions, ABC):
    """A solver as a small frozen value: its fields are its hyper-parameters."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    reference: ClassVar[str] = ""
    """The paper and algorithm number it implements."""
    guarantee: ClassVar[str] = ""
    """What is proved about it, with the assumptions, in one sentence for ``explain()``."""
    always: ClassVar[str] = ""
    """The part of it that needs no assumption on the data, for the short ``explain()``."""
    purpose: ClassVar[str] = ""
    """Why it is run: what its steps do for the objective, in a phrase for ``explain()``."""
    roles: ClassVar[frozenset[Role]] = frozenset()
    """The jobs it is given by default; without one it is run only by name."""
    prior: ClassVar[Prior | None] = None
    """What is expected of it, which decides between backends of one role."""
    published: ClassVar[Mapping[str, Any] | None] = None
    """Options that make it the algorithm as its paper prints it; None when there are none."""
    units: str = "declared"
    """What its steps multiply the gradient of (:data:`sparsemodel.numerics.Units`). With other
    units than ``"declared"`` it is run on the declared observations and columns."""

    def theorems(self) -> tuple[Theorem, ...]:
        """Return what is proved about it with these options, for ``problem.theory()``."""
        return ()

    @final
    @classmethod
    def as_published(cls: type[B], **options: Any) -> B:
        """Return the backend in literal mode: the published algorithm, without improvements.

        Its iterates are those of the paper's pseudo-code. ``options`` are the paper's own
        parameters (a step size for instance) and win over ``published``. The class says what else
        it takes under *Literal mode*.

        Raises
        ------
        ModelError
            When the backend has no literal mode.
        """
        if cls.published is None:
            raise ModelError(
                f"{cls.__name__} has no literal mode: no published algorithm has its iterates. "
                f"Write {cls.__name__}(...) with options of your choice."
            )
        return cls(**{**cls.published, **options})

    @final
    def objections(self, form: Form) -> tuple[str, ...]:
        """Return the reasons why this backend cannot solve ``form``; ``()`` when it can."""
        reasons = _objections(self.capabilities, form)
        if reasons:
            return reasons
        try:
            return tuple(str(reason) for reason in self.extra_objections(form))
        except Exception as error:  # noqa: BLE001 - one backend's mistake must not end all planning
            return (f"cannot say whether it can: {error!r}",)

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        """Return reasons that capabilities cannot express; called when they raise none."""
        return ()

    @abstractmethod
    def solve(self, objective: Objective, context: Context) -> Result:
        """Return a feasible point, never worse than the start."""

    def with_patience(self, factor: float) -> Backend:
        """Return the backend with ``factor`` times the patience of its search.

        ``effort`` and ``time_limit`` of a solve ask for it, and 0 for a descent alone. A backend
        without such an option returns itself.
        """
        return self

    def options(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]


State = TypeVar("State")


class IterativeBackend(Backend, Generic[State]):
    """A backend that is a sequence of iterates; write ``init``, ``step`` and ``stopped``.

    ``State`` is an immutable value of the author's choice that determines the next step.
    """

    default_max_iter: ClassVar[int] = 1000

    def __post_init__(self) -> None:
        check_options(self)  # a backend that has others names them in a `__post_init__` of its own

    @abstractmethod
    def init(self, objective: Objective, context: Context) -> State:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, objective: Objective, state: State, context: Context) -> State:
        """Return the next state."""

    def iterate(self, state: State) -> Point:
        """Return the feasible point a state stands for: its ``point``, by default."""
        point: Point = cast("Any", state).point
        return point

    def published_iterate(self, state: State) -> Point:
        """Return the iterate that the paper prints, for callbacks: :meth:`iterate` by default.

        Another one where that is made of it: pruned to ``k`` entries, or minimised on its support.
        """
        return self.iterate(state)

    def stopped(self, objective: Objective, state: State) -> Stop | None:
        """Return why to end at this state, or None to go on: by default where it is ``done``.

        Called before every step.
        """
        return Stop.CONVERGED if cast("Any", state).done else None

    def residual(self, state: State) -> float:
        """Return a measure of stationarity for the history; NaN when there is none."""
        return float("nan")

    def notes(self, state: State) -> tuple[str, ...]:
        """Return facts for the user at the end."""
        return ()

    def dual(self, state: State) -> tuple[FloatArray, ...] | None:
        """Return the best dual point, one array per term, when the backend has one."""
        return None

    @final
    def solve(self, objective: Objective, context: Context) -> Result:
        """Run the iteration within the limits and return the best iterate."""
        began = time.perf_counter()
        limit = context.limits.max_iter
        if limit is None:
            limit = int(getattr(self, "max_iter", self.default_max_iter))
        try:
            state = self.init(objective, context)
        except KeyboardInterrupt:
            return Result(context.first_point(objective), Stop.INTERRUPTED, iterations=0)
        best = self._point_of(state, "init")
        best_value = priced(objective, best)
        history: list[Iteration] = []
        index = 0
        try:
            stop = self.stopped(objective, state)
            while stop is None:
                if index >= limit:
                    stop = Stop.MAX_ITERATIONS
                    break
                if context.limits.expired():
                    stop = Stop.TIME_LIMIT
                    break
                following = self.step(objective, state, context)
                point = self._point_of(following, "step")
                value = priced(objective, point)
                seen = self.iterate(state).gradient
                failed = seen is not None and np.isnan(seen).any()  # products of the last point
                if failed or not (np.isfinite(value) and np.isfinite(point.x[point.support]).all()):
                    stop = Stop.NON_FINITE
                    break
                state, index = following, index + 1
                if not best_value <= value:  # so written, it replaces a start without a value
                    best, best_value = point, value
                event = Iteration(
                    backend=self.name,
                    index=index,
                    value=value,
                    best=best_value,
                    support=point.support,
                    residual=self.residual(state),
                    elapsed=time.perf_counter() - began,
                    values=point.x[point.support],
                    work=replace(objective.work),
                )
                history.append(event)
                listener = context.on_iterate
                if listener is not None and listener(
                    replace(event, x=self.published_iterate(state).x, state=state)
                ):
                    stop = Stop.CALLBACK
                else:
                    stop = self.stopped(objective, state)
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        return Result(
            point=best,
            stop=stop,
            iterations=index,
            history=tuple(history),
            dual=self.dual(state),
            notes=self.notes(state),
        )

    def _point_of(self, state: State, method: str) -> Point:
        """Return the point of a state that an author's ``init`` or ``step`` returned."""
        name = type(self).__name__
        try:
            point: object = self.iterate(state)
        except AttributeError as error:
            raise BackendContractError(
                f"{name}.{method} returned {_kind_of(state)}, which has no point ({error}). A "
                "state is a value with a field `point`, made by objective.point(support, values) "
                "or objective.point_from(x); for another field write `def iterate(self, state)`."
            ) from error
        if not isinstance(point, Point):
            raise BackendContractError(
                f"{name}.iterate of what {name}.{method} returned is {_kind_of(point)}, not a "
                "Point. Make one with objective.point_from(x), for an array of all coordinates, or "
                "objective.point(support, values)."
            )
        return point


def _kind_of(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def check_class(cls: type[Backend]) -> None:
    """Raise :class:`ModelError` where a class of a backend lacks what planning reads.

    ``name`` and ``capabilities``: the message has the line to write.
    """
    name = cls.__name__
    if not isinstance(getattr(cls, "name", None), str):
        word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        raise ModelError(
            f"{name} has no name, by which plans and reports call it. Write "
            f'`name: ClassVar[str] = "{word}"` in the class.'
        )
    if not isinstance(getattr(cls, "capabilities", None), Capabilities):
        raise ModelError(
            f"{name} does not say which problems it solves. Write `capabilities: "
            "ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,))` in the class, "
            "or Capabilities() for what needs a gradient alone."
        )


def priced(objective: Objective, point: Point) -> float:
    """Return the objective at ``point`` with the price of its support."""
    return point.value + objective.cardinality.paid(point.x)


_FACETS: dict[type, str] = {
    Loss: "that is a sum over observations",
    TwiceDifferentiable: "with second derivatives",
    Curved: "with a second derivative for each observation",
    Quadratic: "that is quadratic",
    Conjugable: "with a known conjugate",
    IntervalConjugable: "with a known conjugate on an interval",
}
"""What facets are called in objections."""

_ACCESS = {Access.COLUMNS: "columns one by one", Access.ROWS: "rows in batches"}


def _objections(can: Capabilities, form: Form) -> tuple[str, ...]:
    """Return every reason at once, in the words of ``explain()``."""
    if not isinstance(form, can.forms):
        known = " and ".join(sorted(f.kind for f in can.forms))
        return (f"is for {known}, not for {form.kind}",)
    sparsity = form.cardinality
    reasons = []
    if sparsity.free.size and not can.free:
        reasons.append("cannot keep coordinates that are not counted (an intercept)")
    if sparsity.groups is not None and not can.groups:
        reasons.append("cannot count groups")
    if sparsity.priced and not can.price:
        reasons.append("cannot put a price on the cardinality in the objective")
    if sparsity.limits and not can.limits:
        reasons.append("cannot keep limits on parts of what is counted")
    if sparsity.order is not None and not can.order:
        reasons.append("cannot keep what is nonzero only together with something else")
    if not can.costs and (sparsity.prices is not None or sparsity.knapsacks):
        reasons.append("cannot weigh costs that differ from unit to unit")
    if not can.costs and sparsity.crossing:
        reasons.append("cannot keep limits on parts that overlap")
    if len(form.shape) > 1 and not can.matrix:
        reasons.append("cannot solve for a matrix variable")
    if can.max_coordinates is not None and sparsity.size > can.max_coordinates:
        reasons.append(f"is for at most {can.max_coordinates} coordinates, not {sparsity.size}")
    if isinstance(form, SparseRegression):
        reasons += _regression_objections(can, form)
    return tuple(reasons)


def _regression_objections(can: Capabilities, form: SparseRegression) -> list[str]:
    reasons = []
    terms = {term.loss.name: term for term in form.terms}
    for name, term in terms.items():
        traits = term.traits
        missing = [facet for facet in can.facets if not isinstance(term.loss, facet)]
        if missing:
            words = " and ".join(_FACETS.get(facet, facet.__name__) for facet in missing)
            reasons.append(f"needs a loss {words}, and {name} is none")
        if can.smooth and not traits.smooth:
            reasons.append(f"needs a gradient everywhere, and {name} has kinks")
        if can.lipschitz and not traits.lipschitz:
            reasons.append(f"needs a bounded second derivative, and {name} has none")
        if can.quadratic and not traits.quadratic:
            reasons.append(f"is for squared losses, and {name} is not quadratic")
    if can.ridge and not np.all(form.ridge[form.sparsity.counted] > 0.0):
        reasons.append("needs a positive ridge on every counted coordinate")
    if form.box is not None and not can.box:
        reasons.append("cannot keep bounds on the coordinates")
    elif form.box is not None and form.box.least is not None and not can.costs:
        reasons.append("cannot keep coordinates at zero or away from it")
    if form.region is not None and not can.region:
        reasons.append(f"cannot keep {form.region.describe()}")
    for term in form.terms:
        lacking = can.access & ~term.design.access
        if lacking:
            words = " and ".join(text for access, text in _ACCESS.items() if access in lacking)
            reasons.append(f"reads {words}, which this design cannot give")
            break
    return reasons
