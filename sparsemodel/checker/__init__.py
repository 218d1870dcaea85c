"""A checker of certificates that shares nothing with the rest of this package.

Small, slow and plain on purpose: NumPy and SciPy alone, to be read in half an hour. ``python -m
sparsemodel.checker certificate.json data.npz`` recomputes what a certificate claims from the data.
Read :mod:`~sparsemodel.checker.arithmetic` first, then ``losses``, ``bound``, ``coefficients`` and
``tree``; ``graph`` is for precision matrices.
"""
