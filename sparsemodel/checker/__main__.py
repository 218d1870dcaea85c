"""``python -m sparsemodel.checker certificate.json data.npz``: does the certificate hold?"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

from sparsemodel.checker import regression
from sparsemodel.checker.files import FORMATS, NotChecked, Refuted, load, read, unread
from sparsemodel.checker.graphs.check import check as check_graph
from sparsemodel.checker.statements import Report

_EXACT = 20_000
"""Entries up to which --exact is meant."""
_HERE = Path(__file__).parent


class _Used:
    """The functions of the checker that are called, in the order of their first calls."""

    def __init__(self) -> None:
        self._codes: dict[CodeType, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; what Python's profiler is given."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(_HERE)) and code.co_name[0] != "<":
            self._codes.setdefault(code)

    def __str__(self) -> str:
        rows = [(len(inspect.getsourcelines(code)[0]), code) for code in self._codes]
        text = f"\nran {len(rows)} functions of {sum(lines for lines, _ in rows)} lines:\n"
        for lines, code in rows:
            place = f"{Path(code.co_filename).relative_to(_HERE)}:{code.co_firstlineno}"
            text += f"  {place:<26} {lines:>3} lines  {code.co_qualname}\n"
        return text


def main(arguments: list[str] | None = None) -> int:
    """Check a certificate; return 0 when it holds, 1 when it does not, 2 when that is not known."""
    parser = argparse.ArgumentParser(prog="python -m sparsemodel.checker", description=__doc__)
    parser.add_argument("certificate", help="a .json file")
    parser.add_argument(
        "data", nargs="+", help=".npz, .npy or .csv files with the data it is about"
    )
    parser.add_argument("--exact", action="store_true", help="rational numbers, no rounding at all")
    parser.add_argument("--functions", action="store_true", help="list the code that judged it")
    given = parser.parse_args(arguments)
    report, used = Report(), _Used()
    status, verdict = 0, ""
    if given.functions:
        sys.setprofile(used)
    try:
        with np.errstate(all="ignore"):
            body = read(given.certificate)
            data = load(given.data)
            if given.exact and max(a.size for a in data.arrays.values()) > _EXACT:
                raise NotChecked(f"--exact is for matrices of up to {_EXACT} entries")
            if body["format"] == FORMATS[1]:
                if given.exact:
                    raise NotChecked("--exact is for piecewise quadratic losses")
                claim = check_graph(body, data, report)
            else:
                claim = regression.check(body, data, given.exact, report)
            left = unread(body)
            if left:
                raise Refuted(f"line '{left[0][1:]}' does not belong into a certificate.")
        kind = "in exact rational arithmetic" if given.exact else "in floats with error bounds"
        verdict = f"the certificate HOLDS, {kind}: {claim}"
    except Refuted as error:
        status, verdict = 1, f"the certificate does NOT hold: {error}"
    except (NotChecked, NotImplementedError, MemoryError) as error:
        status, verdict = 2, f"not checked: {error}"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        status, verdict = 1, f"the certificate does NOT hold: it is malformed ({error!r})"
    finally:
        if given.functions:
            sys.setprofile(None)
    sys.stdout.write(verdict + "\n" + (str(used) if given.functions else ""))
    return status


if __name__ == "__main__":
    sys.exit(main())
