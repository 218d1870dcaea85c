"""``python -m sparsemodel.checker certificate.json data.npz``: does the certificate hold?"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from sparsemodel.checker import files, regression
from sparsemodel.checker.files import NotChecked, Refuted
from sparsemodel.checker.graphs.check import check as check_graphs

_EXACT = 20_000
"""Entries up to which --exact is meant."""


_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What files raise whose lines are of other kinds, or lie deeper than any of a certificate."""


def main(arguments: list[str] | None = None) -> int:
    """Check a certificate; return 0 when it holds, 1 when it does not, 2 when that is not known."""
    parser = argparse.ArgumentParser(prog="python -m sparsemodel.checker", description=__doc__)
    parser.add_argument("certificate", help="a .json file")
    words = ".npz, .npy or .csv files with the data it is about"
    parser.add_argument("data", nargs="+", help=words)
    parser.add_argument("--exact", action="store_true", help="rational numbers, no rounding at all")
    given = parser.parse_args(arguments)
    try:
        with np.errstate(all="ignore"):
            claim = _checked(given)
        kind = "in exact rational arithmetic" if given.exact else "in floats with error bounds"
        status, verdict = 0, f"the certificate HOLDS, {kind}: {claim}"
    except Refuted as error:
        status, verdict = 1, f"the certificate does NOT hold: {error}"
    except (NotChecked, NotImplementedError, MemoryError) as error:
        status, verdict = 2, f"not checked: {error}"
    except _MALFORMED as error:
        status, verdict = 1, f"the certificate does NOT hold: it is malformed ({error!r})"
    files.write(verdict)
    return status


def _checked(given: Any) -> str:
    body = files.read(given.certificate)
    words = "the problem, as the file declares it (is it what you meant?):"
    files.write(words, *files.told(body["problem"]), "recomputed from your data:")
    data = files.Data(given.data)
    if given.exact and max(a.size for a in data.arrays.values()) > _EXACT:
        raise NotChecked(f"--exact is for matrices of up to {_EXACT} entries")
    if body["format"] == files.FORMATS[1]:
        if given.exact:
            raise NotChecked("--exact is for piecewise quadratic losses")
        claim = check_graphs(body, data)
    else:
        claim = regression.check(body, data, given.exact)
    left = files.unread(body)
    files.require(not left, f"line '{(left or [''])[0][1:]}' does not belong into a certificate")
    return claim


if __name__ == "__main__":
    sys.exit(main())
