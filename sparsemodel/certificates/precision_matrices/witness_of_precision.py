"""The dual matrices behind the bounds of precision matrices, as certificates hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionWitness:
    """Dual matrices, as vectors over the coordinates, from which the bounds are recomputed."""

    enclosing: tuple[FloatArray, ...] = ()
    """``U`` of each enclosure of the matrices that are at least as good, one inside the other."""
    final: FloatArray | None = None
    """``U`` of the bound on the last enclosure; None where the trivial bound is the best."""
    restricted: FloatArray | None = None
    """A dual point for the support, off which it counts; None for the inverse of the matrix."""
    modulus: float | None = None
    """``mu`` of the bound; None for the strong-convexity constant of the last enclosure."""

    units: tuple[int, ...] | None = None
    """``e``: the bound is that of the variables in units of ``2^-e``; None for their own. Of
    several matrices, one after the other."""

    level: float | None = None
    """The objective in nats from which the enclosures begin, where that is not the point's: an
    earlier proof's, which may have proved more from its own."""

    moduli: tuple[float, ...] | None = None
    """Of several matrices, their ``mu`` at each enclosure and at the bound, one after the other."""

    NEWER: ClassVar[tuple[str, ...]] = ("modulus", "units", "level", "moduli")

    @classmethod
    def of(
        cls,
        enclosing: Sequence[FloatArray],
        final: FloatArray,
        moduli: Sequence[FloatArray],
        units: Sequence[tuple[int, ...] | None],
    ) -> PrecisionWitness:
        """Return the witness of dual points with a row for each matrix."""
        if len(units) == 1:
            duals = tuple(U[0] for U in enclosing)
            return cls(duals, final[0], modulus=float(moduli[-1][0]), units=units[0])
        order = next((len(e) for e in units if e is not None), 0)
        flat = [0 for _ in range(order)]
        return cls(
            tuple(U.T for U in enclosing),
            final.T,
            units=None if not order else tuple(v for e in units for v in (e or flat)),
            moduli=tuple(float(mu) for each in moduli for mu in each),
        )

    def misfit(self, shape: tuple[int, ...], order: int) -> str:
        """Return what does not fit matrices with entries of that shape; "" where all does.

        Where edges are forbidden, the dual point for the support is one of all entries.
        """
        every = (order * (order + 1) // 2, *shape[1:])
        if self.restricted is not None and self.restricted.shape not in (shape, every):
            return "restricted"
        arrays = {f"enclosing[{i}]": U for i, U in enumerate(self.enclosing)}
        if self.final is not None:
            arrays["final"] = self.final
        return next((line for line, U in arrays.items() if U.shape != shape), "")

    def units_of(self, m: int) -> list[tuple[int, ...] | None]:
        """Return the units of each of ``m`` matrices."""
        if self.units is None:
            return [None] * m
        p, left = divmod(len(self.units), m)
        if left:
            raise ValueError(f"must hold as many numbers for each of {m} matrices.")
        return [self.units[g * p : (g + 1) * p] for g in range(m)]

    def moduli_of(self, m: int) -> list[FloatArray]:
        """Return the moduli of ``m`` matrices at each enclosure and at the bound."""
        if self.moduli is None:
            one = np.full(m, np.nan if self.modulus is None else self.modulus)
            return [one] * (len(self.enclosing) + 1)
        return list(np.reshape(self.moduli, (-1, m)))

    def above(self, upper: float) -> float:
        """Return where the enclosures begin: an upper bound on the optimum, as ``upper`` is one."""
        return upper if self.level is None else max(upper, self.level)
