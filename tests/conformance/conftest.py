"""Counts what the suites executed, and prints one line for every subject at the end."""

from __future__ import annotations

import pytest

from sparsemodel.testing.report import Outcome, Report

_PROPERTY = "conformance"


@pytest.fixture
def counted(record_property):
    """Return a function that keeps a report's counts for the summary, and hands it back."""

    def count(report: Report) -> Report:
        counts = [
            report.executed,
            report.refused,
            report.count(Outcome.EXPECTED_FAILURE),
            len(report.failures),
        ]
        # A property of the test travels from the workers of xdist to the process that prints.
        record_property(_PROPERTY, [report.subject, *counts])
        return report

    return count


def pytest_terminal_summary(terminalreporter) -> None:
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                lines += [value for key, value in report.user_properties if key == _PROPERTY]
    if not lines:
        return
    terminalreporter.section("conformance checks")
    width = max(len(line[0]) for line in lines)
    for subject, executed, refused, expected, failed in sorted(lines):
        tail = f", {failed} FAILED" if failed else ""
        terminalreporter.write_line(
            f"{subject:<{width}}  {executed:4d} executed, {refused:4d} refused, "
            f"{expected:3d} expected failures{tail}"
        )
