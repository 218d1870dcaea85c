"""A checker of certificates that shares nothing with the rest of this package.

Plain and slow on purpose: NumPy and SciPy alone. ``python -m sparsemodel.checker certificate.json
data.npz`` recomputes what a certificate claims from the data. Read
:mod:`~sparsemodel.checker.arithmetic` first, then ``losses``, ``problem``, ``bound``, ``quadratic``
and ``tree``; ``regression`` goes through a file with them. ``graphs`` is for precision matrices.
"""
