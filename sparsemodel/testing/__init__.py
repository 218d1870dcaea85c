"""Conformance suites for authors of losses, designs and backends.

Each suite runs without pytest and returns a :class:`Report` that names what was checked and what
was refused. Nothing in the package imports this at run time.
"""

from sparsemodel.testing.backends import BACKEND_CHECKS, run_backend_suite
from sparsemodel.testing.designs import DESIGN_CHECKS, run_design_suite
from sparsemodel.testing.losses import LOSS_CHECKS, run_loss_suite
from sparsemodel.testing.report import (
    CheckFailure,
    CheckResult,
    Outcome,
    Refusal,
    Report,
    run_checks,
)

__all__ = [
    "BACKEND_CHECKS",
    "DESIGN_CHECKS",
    "LOSS_CHECKS",
    "CheckFailure",
    "CheckResult",
    "Outcome",
    "Refusal",
    "Report",
    "run_backend_suite",
    "run_checks",
    "run_design_suite",
    "run_loss_suite",
]
