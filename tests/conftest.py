"""What every test file shares: one deterministic hypothesis profile, one seeded generator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Derandomised, so that a failure is the same failure for everybody; no deadline, because a time
# limit belongs to pytest-timeout and a loaded machine is not a bug.
settings.register_profile(
    "sparsemodel",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparsemodel")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, new for every test."""
    return np.random.default_rng(20240229)
