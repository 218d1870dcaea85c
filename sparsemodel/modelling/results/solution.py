"""What solving returns, and a point of a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.documents.document import Bar, Bars, Document, Facts, Section
from sparsemodel.documents.documented import Documented
from sparsemodel.documents.numbers import aligned, readings_in_words
from sparsemodel.driver import LowerBound
from sparsemodel.interfaces import FloatArray, IntArray, Iteration, ModelError, Stop
from sparsemodel.modelling.results.fitted import Fitted, ModelContext

PROVED = "optimal (proved)"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution(Documented, Fitted):
    """The best point found, how it was found, and a lower bound on the optimum.

    A solution is not a proof: :meth:`Problem.certify` and :meth:`Problem.prove` return
    certificates, which can be saved and checked again.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, names=["age", "dose", "weight"])
    >>> goal = sm.minimize(sm.squared_loss(np.eye(3) @ w, [0.1, 2.0, -1.0]))
    >>> solution = sm.Problem(goal, sm.card(w) <= 2).solve()
    >>> solution.support
    ['dose', 'weight']
    >>> solution.coefficients
    {'dose': 2.0, 'weight': -1.0}
    """

    value: float
    """Objective at the solution."""
    stop: Stop
    """Why the run ended: ``Stop.CONVERGED``, ``Stop.TIME_LIMIT``, ..."""
    backend: str
    """Name of the backend that found the solution."""
    iterations: int
    """Iterations of all stages together."""
    indices: IntArray
    """Sorted indices of the nonzero counted entries (rows), within their variable."""
    support_names: tuple[Any, ...] | None
    """Their names, if they have any; pairs of names for the edges of a precision matrix."""
    coefficients: Mapping[str, float | FloatArray]
    """Nonzero coefficients by name, uncounted ones (the intercept) included."""
    values: Mapping[str, Any]
    """Each variable's value by its label."""
    history: tuple[Iteration, ...] = field(repr=False)
    """One :class:`~sparsemodel.interfaces.Iteration` for each, with objective and seconds."""
    timings: Mapping[str, float] = field(repr=False)
    """Seconds by name, which are ``compile``, ``solve`` and ``total``."""
    passes: float
    """Work of the solve in passes over the data (``A @ x`` and ``A.T @ r``)."""
    lower: LowerBound = field(repr=False)
    """What :attr:`bound` and :attr:`status` are read from."""
    readings: float | None = 0.0
    """How often data in files were read; 0 for data in memory. None where that is not known (Dask
    arrays and operators); see :attr:`passes`."""
    bytes_read: int | None = 0
    """Bytes read from files; None where that is not known."""
    notes: tuple[str, ...] = ()
    """Remarks on the solution, such as an active default bound on eigenvalues."""
    nodes: tuple[str, ...] | None = None
    """Names of the variables behind a precision matrix, if they have any."""
    counts: str = "nonzero"
    """What the support has, behind their number."""
    chosen: int = 0
    """How many entries (rows, groups, edges) are nonzero."""
    units: int = 0
    """How many entries (rows, groups, edges) there were to choose from."""
    use: ModelContext | None = field(default=None, repr=False)

    @property
    def support(self) -> Any:
        """Return the names of the nonzero counted entries, or their indices if unnamed."""
        return self.indices if self.support_names is None else list(self.support_names)

    @property
    def bound(self) -> float:
        """Return a valid lower bound on the optimum; ``-inf`` where none is known.

        It is computed when it is first read, by a short proof, and if that does not close by
        ``certify()``, in no more time than the solve took, or a tenth of a second. For data in
        files, on workers or given as operators it is the bound that the run itself produced.
        """
        return self.lower.read().value

    @property
    def status(self) -> str:
        """Return ``"stopped early"``, ``"solved"`` or ``"optimal (proved)"``.

        A run that stalled stopped early, too. It is proved if :attr:`bound` closes the gap to 1e-6
        of the objective, as for a certificate that says "globally optimal".
        """
        if self.stop is not Stop.CONVERGED:
            return "stopped early"
        return PROVED if self.lower.read().optimal else "solved"

    @property
    def gap(self) -> float:
        """Return ``value - bound``; infinite without a bound."""
        return self.value - self.bound

    @rejects_unknown_arguments
    def graph(self, matrix: str | None = None) -> Any:
        """Return the graph of a precision-matrix solution: an edge per nonzero off the diagonal.

        Edges carry the partial correlation as ``weight`` and the matrix entry as ``precision``.

        Parameters
        ----------
        matrix
            The label of a matrix, if several have a common pattern; its entries are on the edges.

        Returns
        -------
        networkx.Graph
            Its nodes are the names of the variables, or their indices.

        Raises
        ------
        ModelError
            When the solution is not one of precision matrices, or ``matrix`` is none of their
            labels.
        """
        from sparsemodel.reporting.graphs import precision_graph

        if self.indices.ndim != 2 or any(np.ndim(v) != 2 for v in self.values.values()):
            raise ModelError(
                "graph() is only for solutions of precision-matrix problems (sm.gaussian_nll); "
                "this one has no edges."
            )
        labels = list(self.values)
        if (matrix is None and len(labels) > 1) or (matrix is not None and matrix not in labels):
            shown = ", ".join(map(repr, labels))
            raise ModelError(
                f"graph() needs the label of one of {shown}: write graph({labels[0]!r})."
            )
        return precision_graph(self.values[labels[0] if matrix is None else matrix], self.nodes)

    def document(self) -> Document:
        """Return what was found, and how, in words."""
        graph = self.indices.ndim == 2
        chosen = f"{self.chosen} of {self.units}" if self.units else f"{self.chosen}"
        steps = "1 iteration" if self.iterations == 1 else f"{self.iterations} iterations"
        passes = f"{self.passes:.3g}"
        work = f"{steps}, {passes} {'pass' if passes == '1' else 'passes'} over the data"
        rows = [
            ("lower bound", self._bound_in_words()),
            ("run", f"{self.status} by {self.backend}: {self.stop.value}, {work}"),
            ("time", f"{self.timings['total']:.3g} s"),
            *readings_in_words(self.readings, self.bytes_read),
            *(("note", note) for note in self.notes),
        ]
        title, bars = ("Edges", self._edges()) if graph else ("Coefficients", self._bars())
        return Document(
            kind="Solution",
            title=f"{chosen} {self.counts}, objective {self.value:.8g}",
            sections=(
                Section("", (Facts(rows),), folded=False),
                Section(title, (bars,), folded=False),
            ),
        )

    def _bound_in_words(self) -> str:
        if not np.isfinite(self.bound):
            return "none is known; problem.certify() says why"
        known = f"{self.bound:.8g} (gap {max(self.gap, 0.0):.3g})"
        if self.lower.optimal:
            return f"{known}; problem.prove() returns the certificate"
        if np.isfinite(self.lower.better):
            return f"{known}; problem.prove() returns a better solution, {self.lower.better:.8g}"
        return f"{known}; problem.certify() looks for a better one"

    def _bars(self) -> Bars:
        numbers = {name for name, value in self.values.items() if np.ndim(value) == 0}
        whole = all(np.ndim(value) == 0 for value in self.coefficients.values())
        texts = aligned([float(v) for v in self.coefficients.values()]) if whole else None
        rows = []
        for index, (name, value) in enumerate(self.coefficients.items()):
            entries = np.atleast_1d(value)
            size = float(value) if np.ndim(value) == 0 else float(np.linalg.norm(entries))
            text = (
                ", ".join(f"{v:.4g}" for v in entries.tolist()) if texts is None else texts[index]
            )
            rows.append(Bar(str(name), size, text, name not in numbers))
        rows.sort(key=lambda bar: (not bar.drawn, -abs(bar.size)))
        return Bars(rows)

    def _edges(self) -> Bars:
        """Return the edges by the size of their partial correlations, one for each matrix."""
        from sparsemodel.reporting.graphs import partial_correlations

        matrices = list(self.values.values())
        pattern = np.triu(np.any([matrix != 0.0 for matrix in matrices], axis=0), 1)
        each = np.stack([partial_correlations(matrix)[pattern] for matrix in matrices], axis=1)
        node = self.nodes or range(len(pattern))
        rows = [
            Bar(f"{node[i]} -- {node[j]}", max(r, key=abs), ", ".join(f"{v:+.4f}" for v in r))
            for (i, j), r in zip(np.argwhere(pattern).tolist(), each.tolist(), strict=True)
        ]
        rows.sort(key=lambda bar: (-abs(bar.size), bar.name))
        return Bars(rows, ("edge", "partial correlation"), "There are no edges.", scale=1.0)

    def __repr__(self) -> str:
        found = f"{self.chosen} of {self.units}" if self.units else self.chosen
        return f"<Solution: {found} nonzero, objective {self.value:.6g}, {self.status}>"


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathSolution(Fitted):
    """The solution for one k of a path, chosen by a rule."""

    k: int
    value: float
    """Objective; infinite where no feasible point was found."""
    support: Any
    """Names of the nonzero counted entries, or their indices if unnamed."""
    coefficients: Mapping[str, float | FloatArray]
    """Nonzero coefficients by name, uncounted ones included."""
    values: Mapping[str, Any]
    """Each variable's value by its label."""
    chosen_by: str
    scores: FloatArray
    """The rule's score for every k of the path (and every ridge); smaller is better."""
    ridge: float | None = None
    """The chosen one of ``ridges=``."""
    stop: Stop = Stop.CONVERGED
    """``Stop.TIME_LIMIT`` if a time limit ended the cross-validation that chose it."""
    use: ModelContext | None = field(default=None, repr=False)

    def __str__(self) -> str:
        ridge = "" if self.ridge is None else f", ridge = {self.ridge:g}"
        if not np.isfinite(self.value):
            return f"k = {self.k}{ridge}: no feasible point was found"
        early = f", stopped early: {self.stop.value}" if self.stop.requested else ""
        return f"k = {self.k}{ridge} by {self.chosen_by}: objective {self.value:.8g}{early}"
