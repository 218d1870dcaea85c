"""``sparsemodel verify``: recompute a certificate from the data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sparsemodel.cli.commands.precision import add_problem, declare_graph
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import to_json
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import add_data, add_model, read, recorded
from sparsemodel.cli.recording import is_about_a_graph, problem_parser, recipe_of
from sparsemodel.interfaces import CertificateError

NAME = "verify"
USAGE = "verify CERTIFICATE --data DATA [options]"
SUMMARY = "recompute a certificate from the data, believing nothing in it"
DESCRIPTION = """\
Declare the problem again from the data and recompute every number of the certificate. The options
of the problem are taken from the certificate where `sparsemodel solve` wrote it, and printed, so
that you see what was proved; options given here come on top of them.
"""
EPILOG = """\
examples:
  sparsemodel verify certificate.json --data houses.csv
  sparsemodel verify certificate.json --data houses.csv --target price --k 8
  sparsemodel verify certificate.json --data houses.csv --cross-check

Exit code 0 says that the certificate holds, 7 that it does not.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("certificate", metavar="CERTIFICATE", type=Path, help="a .json file")
    parser.add_argument(
        "--data", metavar="DATA", required=True, help="the data it is about, from your own source"
    )
    parser.add_argument(
        "--cross-check",
        action="store_true",
        help="also solve the relaxation with CVXPY, from its algebraic form",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    # Declared for the help; what is parsed is the recipe with these options after it.
    add_data(parser)
    add_model(parser)


def run(arguments: argparse.Namespace) -> int:
    """Verify, and say what was checked."""
    from sparsemodel.certificates import Certificate

    if is_about_a_graph(arguments.certificate):
        return _verify_graph(arguments)
    certificate = Certificate.load(arguments.certificate)
    recipe = recipe_of(arguments.certificate) or []
    given = _given(arguments)
    chosen = problem_parser().parse_args(recipe + given)
    if chosen.k is None:
        raise UsageError(
            "The certificate does not say how its problem was declared (it was not written by "
            "`sparsemodel solve`); give --target, --loss, --k and the other options here."
        )
    table = read(arguments.data, chosen)
    problem = declare(table, chosen, chosen.k).problem
    # A certificate made in Python has the names of a declaration that is not known here.
    names = problem.layout.names() if recipe else None
    more = {"names": names, "cross_check": arguments.cross_check}
    return _checked(certificate, problem, recipe + given, arguments, more)


def _verify_graph(arguments: argparse.Namespace) -> int:
    from sparsemodel.certificates import PrecisionCertificate

    certificate = PrecisionCertificate.load(arguments.certificate)
    parser = problem_parser(add_problem)
    options = (recipe_of(arguments.certificate) or []) + recorded(parser, arguments)
    chosen = parser.parse_args(options)
    if chosen.edges is None:
        raise UsageError(
            "The certificate does not say how its problem was declared (it was not written by "
            "`sparsemodel precision`); verify it in Python with sparsemodel.certificates.verify."
        )
    problem = declare_graph(read(arguments.data, chosen), chosen)
    more = {"cross_check": arguments.cross_check}
    return _checked(certificate, problem, options, arguments, more)


def _checked(
    certificate: Any,
    problem: Any,
    options: list[str],
    arguments: argparse.Namespace,
    more: dict[str, Any],
) -> int:
    from sparsemodel.certificates import verify

    statement = problem.plan().problem
    try:
        verification = verify(certificate, problem.form, **more)
    except CertificateError as error:
        if arguments.json:
            print(to_json({"holds": False, "reason": str(error), "problem": statement}))
        else:
            print(f"The certificate does NOT hold: {error}")
        return Exit.REFUTED
    if arguments.json:
        print(
            to_json(
                {
                    "holds": True,
                    "claim": verification.claim.value,
                    "problem": statement,
                    "options": options,
                    "checked": dict(verification.lines),
                }
            )
        )
    else:
        print(f"problem: {statement}")
        print(f"options: {' '.join(options)}")
        print(verification)
    return Exit.OK


def _given(arguments: argparse.Namespace) -> list[str]:
    return recorded(problem_parser(), arguments)


__all__ = ["add", "run"]
