"""A checker of certificates that shares nothing with the rest of this package.

Plain and slow on purpose: NumPy and SciPy alone. ``python -m sparsemodel.checker certificate.json
data.npz`` recomputes what a certificate claims from the data. Whoever wants to trust a bound reads
the folder ``proof``: ``arithmetic``, ``losses``, ``problem``, ``supports``, ``bound`` and
``evidence``, then ``quadratic`` and ``tree`` for certificates with more than one dual point.
``statements`` compares what else a file says, and proves nothing; ``files`` reads it and the data.
``graphs`` is for precision matrices.
"""
