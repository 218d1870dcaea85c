"""Every law of a design holds for designs composed at random."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from sparsemodel.testing.designs import DESIGN_CHECKS
from sparsemodel.testing.laws.design_laws import Tolerance
from tests.properties.strategies import composed_designs

# Means are subtracted after the product, so what is left is as good as what was there before.
TOLERANCE = Tolerance(relative=1e-11, absolute=1e-9)


@given(drawn=composed_designs())
def test_composed_designs_obey_every_law(drawn):
    design, array = drawn
    before = array.copy()
    for law in DESIGN_CHECKS:
        law(design, array, TOLERANCE)
        assert np.array_equal(array, before), law.__name__
