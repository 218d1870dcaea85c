"""The suites that sparsemodel ships, run on a stranger's backend and loss."""

from sparsemodel_stranger import Forward, PseudoHuberLoss

from sparsemodel.testing import run_backend_suite, run_loss_suite


def test_backend():
    report = run_backend_suite(Forward())
    report.raise_if_failed()
    assert report.executed > 190, report.summary()


def test_loss():
    report = run_loss_suite(PseudoHuberLoss(), lambda rng, n: 3.0 * rng.normal(size=n))
    report.raise_if_failed()
    assert report.executed > 30, report.summary()
