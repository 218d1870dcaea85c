"""Solve one random problem and say what is wrong with what came back."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify
from sparsemodel.interfaces import FloatArray
from sparsemodel.testing.stress.courts.court import place_of, plain, referee_faults
from sparsemodel.testing.stress.courts.witnesses import witnesses
from sparsemodel.testing.stress.posing.build import Trial, make_trial
from sparsemodel.testing.stress.posing.declared import DeclaredRecipe
from sparsemodel.testing.stress.posing.precision import (
    PrecisionRecipe,
    PrecisionTrial,
    make_precision_trial,
)
from sparsemodel.testing.stress.posing.recipe import Recipe

_FEASIBLE, _FEASIBLE_CONVEX = 1e-9, 2e-6
"""Violations that count as rounding: of bounds, and of constraints that CVXPY keeps."""
_SAME = 1e-8
"""Relative difference of two evaluations in double precision."""
_SAME_SINGLE = 2e-5
"""The same where the data are in single precision."""


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a problem."""

    recipe: Recipe | PrecisionRecipe | DeclaredRecipe
    outcome: str
    """``"solved"``, ``"refused"``, or ``"crashed"``."""
    reason: str = ""
    """The error of a refusal or a crash, its numbers left out."""
    faults: tuple[str, ...] = ()
    """What must not happen and did; empty for a sound run."""
    seconds: float = 0.0
    bounded: bool = False
    """Whether a finite bound was checked."""
    witnesses: int = field(default=0)
    """Feasible points the bounds were compared with."""
    judged: int = 0
    """Answers that the referee judged."""
    worse: tuple[float, ...] = ()
    """Of those: by which share of its objective a better point is known."""


def judge(recipe: Recipe | PrecisionRecipe | DeclaredRecipe) -> Verdict:
    """Solve and certify the problem of a recipe, and check everything that is promised.

    Either a solution that keeps the constraints, is no worse than its start, has the objective it
    says and bounds that no feasible point refutes, and whose certificate survives its own
    verification; or an error of the library. In either case no warning, no changed array, no
    changed state of NumPy.
    """
    if isinstance(recipe, DeclaredRecipe):
        return _judge_declared(recipe)
    trial: Trial | PrecisionTrial
    trial = make_trial(recipe) if isinstance(recipe, Recipe) else make_precision_trial(recipe)
    before = [_content(array) for array in trial.arrays()]
    state, random = np.geterr(), _random_state()
    faults: list[str] = []
    outcome, reason = "solved", ""
    check: Callable[[], tuple[bool, int]] | None = None
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if isinstance(trial, PrecisionTrial):
                check = partial(trial.check, trial.run(faults), faults)
            else:
                check = partial(_check, trial, _run(trial, faults), faults)
        except sm.SparseModelError as error:
            outcome, reason = "refused", f"{type(error).__name__}: {plain(str(error))}"
            if len(str(error)) < 20:
                faults.append(f"an error that explains nothing: {error}")
            if isinstance(error, sm.BackendContractError):
                faults.append(f"broken contract: {plain(str(error))}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what is being looked for
            outcome, reason = "crashed", f"{type(error).__name__}: {plain(str(error))}"
            faults.append(f"crash: {reason}{place_of(error)}")
    seconds = time.perf_counter() - began
    faults += sorted({_told(w) for w in caught})
    if [_content(array) for array in trial.arrays()] != before:
        faults.append("changed an array of the caller")
    if np.geterr() != state or _random_state() != random:
        faults.append("changed a state of NumPy")
    bounded, compared = False, 0
    if check is not None:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            bounded, compared = check()
    judged = 2 * (outcome == "solved")  # the solution and its certificate
    return Verdict(recipe, outcome, reason, tuple(faults), seconds, bounded, compared, judged)


def _judge_declared(recipe: DeclaredRecipe) -> Verdict:
    state, random = np.geterr(), _random_state()
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        court = recipe.hold()
    faults = [*court.faults, *sorted({_told(w) for w in caught})]
    if np.geterr() != state or _random_state() != random:
        faults.append("changed a state of NumPy")
    judged = sum(court.judged.values())
    crashed = any(fault.startswith("crash") for fault in faults)
    return Verdict(
        recipe,
        "crashed" if crashed else "solved" if judged else "refused",
        court.refusals[0] if court.refusals and not judged else "",
        tuple(faults),
        time.perf_counter() - began,
        court.bounded,
        0,
        judged,
        tuple(court.worse),
    )


def _content(array: Any) -> tuple[bytes, str, tuple[int, ...]]:
    return array.tobytes(), array.dtype.str, array.shape


def _random_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return (kind, np.asarray(keys).tobytes(), *rest)


def _told(warning: warnings.WarningMessage) -> str:
    where = f"{warning.filename.rpartition('/')[2]}:{warning.lineno}"
    return f"warning: {warning.category.__name__}: {plain(str(warning.message))} [{where}]"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What the library returned."""

    x: FloatArray
    shift: FloatArray
    """The intercept, zero where there is none."""
    first: tuple[FloatArray, FloatArray]
    """Where the run began."""
    solution: sm.Solution
    certificate: Certificate


def _run(trial: Trial, faults: list[str]) -> Run:
    problem, w, c = trial.problem()
    nothing = np.zeros(trial.shape[1:])
    start: Any = None if trial.start is None else {w: trial.start}
    first = (np.zeros(trial.shape) if trial.start is None else trial.start, nothing)
    if trial.recipe.start == "again":
        problem.solve()
        start, first = "value", (_array(w.value), nothing if c is None else _array(c.value))
    solution = problem.solve(trial.backend, start=start)
    certificate = problem.certify()
    faults += referee_faults(problem, solution, certificate)
    if not (str(solution) and repr(solution) and str(certificate)):
        faults.append("cannot be printed")
    try:
        verify(Certificate.from_json(certificate.to_json()), problem.form)
    except sm.CertificateError as error:
        faults.append(f"its own certificate does not verify: {plain(str(error))}")
    shift = nothing if c is None else _array(c.value)
    return Run(_array(w.value), shift, first, solution, certificate)


def _array(value: Any) -> FloatArray:
    return np.array(value, dtype=np.float64)


def _check(trial: Trial, run: Run, faults: list[str]) -> tuple[bool, int]:
    value, error = _check_point(trial, run, faults)
    bounds = {"solution.bound": run.solution.bound, "certificate.bound": run.certificate.bound}
    if any(not bound < np.inf for bound in bounds.values()):
        faults.append(f"invalid bound: {bounds}")
    if value - error > run.certificate.upper:
        faults.append(
            f"invalid upper: {run.certificate.upper!r}, the objective is {float(value)!r}"
        )
    finite = {name: bound for name, bound in bounds.items() if np.isfinite(bound)}
    compared = 0
    for at, also in [(run.x, run.shift), *(witnesses(trial, run.x) if finite else ())]:
        if not finite or trial.violation(at) > 0.0:
            continue
        compared += 1
        lowest, margin = trial.value(at, also)
        for name, bound in finite.items():
            if np.isfinite(lowest) and np.longdouble(bound) > lowest + margin:
                faults.append(
                    f"invalid bound: {name} = {bound!r} and a feasible point has "
                    f"{float(lowest)!r} (+- {float(margin):.1g})"
                )
                return True, compared
    return bool(finite), compared


def _check_point(trial: Trial, run: Run, faults: list[str]) -> tuple[Any, Any]:
    solution = run.solution
    convex = trial.recipe.constraint in ("norm", "sum", "inequality")
    allowed = trial.rounding(run.x) + (_FEASIBLE_CONVEX if convex else _FEASIBLE)
    if (broken := trial.violation(run.x)) > allowed:
        faults.append(f"infeasible: by {broken:.1e}")
    single = trial.recipe.storage == "float32"
    value, error = (
        trial.value(run.x, run.shift)[0],
        trial.value(run.x, run.shift, 2.0**-24 if single else 2.0**-53)[1],
    )
    same = _SAME_SINGLE if single else _SAME
    size = max(abs(float(value)), abs(solution.value), 1e-300)
    loose = same * size + 8.0 * float(error)
    if not abs(float(value) - solution.value) <= loose:
        faults.append(f"wrong value: says {solution.value!r}, it is {float(value)!r}")
    began = trial.value(*run.first)[0] if trial.violation(run.first[0]) <= 0.0 else np.inf
    if float(value - began) > same * abs(float(began)) + loose:
        faults.append(f"worse than its start: {float(value)!r}, began at {float(began)!r}")
    if solution.indices.shape[0] != len(set(solution.indices.tolist())):
        faults.append("wrong support: it repeats an index")
    return value, error
