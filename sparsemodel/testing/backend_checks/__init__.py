"""The checks of the backend suite, by what they are about.

Each is a plain function of a :class:`~sparsemodel.testing.instances.subject.Subject` and an
instance that raises :class:`~sparsemodel.testing.report.CheckFailure` where a law does not hold,
and :class:`~sparsemodel.testing.report.Refusal` where the backend objects to the instance.
"""
