"""What a result is worth, measured against answers found without the library."""

from __future__ import annotations

import numpy as np

from sparsemodel.testing.instances.catalogue import support_of
from sparsemodel.testing.instances.problems import Instance
from sparsemodel.testing.instances.reference import brute_force, minimum_on
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import check, check_close


def recovers_the_planted_support(subject: Subject, instance: Instance) -> None:
    """The support that generated the data is found, with its best values."""
    planted = support_of(instance)
    result = subject.converged(instance)
    check(
        np.array_equal(result.point.support, planted),
        f"found the support {result.point.support}, planted was {planted}",
    )
    best = minimum_on(instance, planted)
    value, origin = instance.value(best), instance.value(np.zeros(instance.shape))
    check_close(
        instance.value(result.point.x),
        value,
        "value on the planted support",
        rtol=0.0,
        atol=subject.accuracy * (origin - value),
    )


def agrees_with_brute_force(subject: Subject, instance: Instance) -> None:
    """The value is the smallest over all supports, and never below it."""
    reference = brute_force(instance)
    result = subject.converged(instance)
    excess = (instance.value(result.point.x) - reference.value) / reference.scale
    check(excess <= subject.accuracy, f"{excess:.3g} above the minimum, relative to the decrease")
    check(excess >= -1e-9, f"{-excess:.3g} below the minimum: a wrong value or a wrong reference")
