"""A checker of certificates that shares nothing with the rest of this package.

Plain and slow on purpose: NumPy and SciPy alone. ``python -m sparsemodel.checker certificate.json
data.npz`` recomputes what a certificate claims from the data.

How to read it. A bound is believed for what is in the folder ``proof``, in this order:

1. ``arithmetic``: numbers that know their rounding errors, or rational ones (``--exact``).
2. ``losses`` (with ``curves``): values and conjugates, one table for all.
3. ``supports``: the least that a base and the gains of units leave, over all supports that may be;
   and trees, whose parts must cover them. The same for coordinates, groups, rows and edges.
4. ``problem``: what the file declares, put together from the reader's data.
5. ``bound``: the objective, and one formula for what dual points or a tangent prove. Most
   certificates need nothing further.
6. ``quadratic``: curvature and bounds on coefficients; ``constraints``: norms, eigenvalues, rows.

``regression`` goes through a file line by line. ``statements`` compares what proves nothing, and
``files`` reads. ``graphs`` is for precision matrices: ``graph`` has the bound, ``check`` the lines.
"""
