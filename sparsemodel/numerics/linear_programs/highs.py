"""Linear programs in HiGHS: a model that stays, and runs that a deadline or Ctrl-C ends."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.interfaces import BoolArray, FloatArray, IntArray

_TOLERANCE = 1e-9
"""Of rows, bounds and reduced costs, in the units of the program, where numbers are near one."""
_LOOK = 0.1
"""Seconds after which it is looked whether time is up."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """``low <= A x <= high``, ``A`` a CSR array."""

    matrix: Any
    low: FloatArray
    high: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """How a run ended."""

    status: str
    """``"optimal"``, ``"infeasible"``, ``"unbounded"``, ``"limit"`` or ``"interrupted"``."""
    x: FloatArray | None
    """The best point, where there is one."""
    bound: float
    """What no point is below, by HiGHS' own account."""
    slopes: FloatArray | None = None
    """The multiplier of each row, of linear programs without choices."""


@final
class Model:
    """A linear program in HiGHS, which keeps its basis from one run to the next.

    Parameters
    ----------
    cost, lower, upper
        Of each column.
    rows
        The constraints.
    whole
        Which columns are whole numbers; None for none.
    nodes
        Limit on the nodes of branch and cut.
    """

    def __init__(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        rows: Rows,
        whole: BoolArray | None = None,
        nodes: int | None = None,
    ) -> None:
        import highspy  # takes a while, and few problems need it

        class Quiet(highspy.Highs):
            """HiGHS without its greeting, which it prints where the first callback is set."""

            def enableCallbacks(self) -> None:
                self.setOptionValue("output_flag", False)
                super().enableCallbacks()  # type: ignore[no-untyped-call]

        self._highs: Any = Quiet()  # type: ignore[no-untyped-call]
        for name, value in (
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", _TOLERANCE),
            ("mip_feasibility_tolerance", _TOLERANCE),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
        ):
            self._highs.setOptionValue(name, value)
        self._stop = threading.Event()

        def ask(event: Any) -> None:
            if self._stop.is_set():
                event.interrupt()

        if whole is not None:
            self._highs.cbMipInterrupt.subscribe(ask)
            self._highs.cbSimplexInterrupt.subscribe(ask)
        if nodes is not None:
            self._highs.setOptionValue("mip_max_nodes", nodes)
        self._kinds: Any = highspy.HighsModelStatus
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = cost.size, rows.low.size
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
        lp.row_lower_, lp.row_upper_ = rows.low, rows.high
        self._sides = rows.low, rows.high
        self._table = table = rows.matrix.tocsc()
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = table.indptr.astype(np.int32)
        lp.a_matrix_.index_ = table.indices.astype(np.int32)
        lp.a_matrix_.value_ = table.data
        if whole is not None:
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in whole]
        self._choices = whole is not None
        self._highs.passModel(lp)

    def set_costs(self, columns: IntArray, costs: FloatArray) -> None:
        """Change some costs."""
        self._highs.changeColsCost(columns.size, columns.astype(np.int32), costs)

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns."""
        self._highs.changeColsBounds(columns.size, columns.astype(np.int32), lower, upper)

    def add_row(self, columns: IntArray, values: FloatArray, low: float, high: float) -> None:
        """Add a constraint."""
        self._highs.addRow(low, high, columns.size, columns.astype(np.int32), values)

    def begin_at(self, columns: IntArray, values: FloatArray) -> None:
        """Begin with some columns at these values; HiGHS completes the point."""
        self._highs.setSolution(columns.size, columns.astype(np.int32), values)

    def run(self, deadline: float | None = None) -> Answer:
        """Solve, until a deadline in the clock of :func:`time.perf_counter`.

        Ctrl-C ends a program with whole numbers, and its best point is returned.
        """
        highs = self._highs
        if not self._table.shape[1]:  # which HiGHS does not look at
            empty = bool(np.all((self._sides[0] <= 0.0) & (self._sides[1] >= 0.0)))
            nothing = np.zeros(self._table.shape[0])
            return Answer("optimal" if empty else "infeasible", np.zeros(0), 0.0, nothing)
        left = np.inf if deadline is None else max(deadline - time.perf_counter(), 0.0)
        highs.setOptionValue("time_limit", float(left))
        if not self._choices:
            highs.run()
            return self._answer()
        # In a thread of its own, as Ctrl-C comes to an end of bytecode in the main one.
        done = threading.Event()
        threading.Thread(target=self._work, args=(done,), daemon=True).start()
        try:
            while not done.wait(_LOOK):
                pass
        except KeyboardInterrupt:
            self._stop.set()
            done.wait()
            return replace(self._answer(), status="interrupted")
        return self._answer()

    def _work(self, done: threading.Event) -> None:
        """Solve in this thread, and end the threads that HiGHS keeps for it."""
        try:
            self._highs.run()
        finally:
            self._highs.resetThreadScheduler(True)
            done.set()

    def ray(self) -> FloatArray | None:
        """Return multipliers of rows whose sum no point between the bounds satisfies, by one.

        After a run that found the program infeasible, to which no row was added. They are those of
        the least sum of violations, divided by it.
        """
        from scipy import sparse

        lp, (m, n) = self._highs.getLp(), self._table.shape
        one = sparse.eye_array(m)
        wide = sparse.csr_array(sparse.hstack([self._table, one, -one]))
        none, nothing = np.zeros(m), np.full(m, np.inf)
        elastic = Model(
            np.concatenate([np.zeros(n), np.ones(2 * m)]),
            np.concatenate([np.array(lp.col_lower_), none, none]),
            np.concatenate([np.array(lp.col_upper_), nothing, nothing]),
            Rows(wide, np.array(lp.row_lower_), np.array(lp.row_upper_)),
        )
        found = elastic.run()
        if found.status != "optimal" or found.slopes is None or not found.bound > _TOLERANCE:
            return None
        return found.slopes / found.bound

    def _answer(self) -> Answer:
        highs, kinds = self._highs, self._kinds
        found, info = highs.getModelStatus(), highs.getInfo()
        status = {
            kinds.kOptimal: "optimal",
            kinds.kInfeasible: "infeasible",
            kinds.kUnbounded: "unbounded",
            kinds.kUnboundedOrInfeasible: "infeasible",
        }.get(found, "limit")
        solution = highs.getSolution()
        x = None
        if info.primal_solution_status == 2:  # feasible
            x = np.array(solution.col_value)
        if self._choices:
            return Answer(status, x, float(info.mip_dual_bound))
        value = float(info.objective_function_value) if status == "optimal" else -np.inf
        slopes = np.array(solution.row_dual) if solution.dual_valid else None
        return Answer(status, x, value, slopes)
