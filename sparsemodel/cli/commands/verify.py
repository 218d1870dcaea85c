"""``sparsemodel verify``: recompute a certificate from the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from sparsemodel.cli.commands.precision import GraphOptions, declare_graph
from sparsemodel.cli.declaring import flag, option, part, positional, recorded
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import to_json
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import FileOptions, RegressionOptions
from sparsemodel.cli.recording import opened, read_recipe
from sparsemodel.interfaces import CertificateError

NAME = "verify"
USAGE = "verify CERTIFICATE --data DATA [options]"
SUMMARY = "recompute a certificate from the data without trusting the file"
DESCRIPTION = """\
Declare the problem again from the data and recompute every number of the certificate. The options
of the problem are read from certificates that `sparsemodel solve` wrote, and printed, so that you
see what was proved; options given here are added to them.
"""
EPILOG = """\
examples:
  sparsemodel verify certificate.json --data houses.csv
  sparsemodel verify certificate.json --data houses.csv --target price --k 8
  sparsemodel verify certificate.json --data houses.csv --cross-check

Exit code 0 means that the certificate holds, 7 that it does not, 3 that its file was changed.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which certificate, which data, and options of the problem on top of those in the file."""

    certificate: Path = positional("CERTIFICATE", "a .json file", kind=Path)
    data: str = option("the data, from your own source", metavar="DATA", required=True)
    cross_check: bool = flag("also solve the relaxation with CVXPY, from its algebraic form")
    json: bool = flag("print JSON")
    problem: RegressionOptions = part()


def run(options: Options) -> int:
    """Verify, and say what was checked."""
    from sparsemodel.certificates import PrecisionCertificate

    certificate, recipe = opened(options.certificate)
    if isinstance(certificate, PrecisionCertificate):
        return _verify_graph(certificate, recipe or [], options)
    line = (recipe or []) + recorded(options.problem)
    chosen = read_recipe(RegressionOptions, line)
    if chosen.k is None:
        raise UsageError(
            "The certificate does not say how its problem was declared (it was not written by "
            "`sparsemodel solve`); give --target, --loss, --k and the other options here."
        )
    table = chosen.file.read(options.data, chosen.columns)
    problem = declare(table, chosen.model, chosen.k).problem
    # A certificate made in Python has the names of a declaration that is not known here.
    names = problem.layout.names() if recipe else None
    return _checked(certificate, problem, line, options, names)


def _verify_graph(certificate: Any, recipe: list[str], options: Options) -> int:
    others = replace(options.problem, file=FileOptions())
    if recorded(others):
        raise UsageError(
            f"{', '.join(recorded(others))}: these options declare a regression, and the "
            "certificate is about a precision matrix. Leave them out."
        )
    line = recipe + recorded(options.problem.file)
    chosen = read_recipe(GraphOptions, line)
    if chosen.model.edges is None:
        raise UsageError(
            "The certificate does not say how its problem was declared (it was not written by "
            "`sparsemodel precision`); verify it in Python with sparsemodel.certificates.verify."
        )
    table = chosen.file.read(options.data)
    problem = declare_graph(table, chosen.model, chosen.model.edges)
    return _checked(certificate, problem, line, options, None)


def _checked(
    certificate: Any,
    problem: Any,
    line: list[str],
    options: Options,
    names: tuple[str, ...] | None,
) -> int:
    from sparsemodel.certificates import verify

    statement = problem.plan().words.problem
    try:
        verification = verify(
            certificate, problem.form, names=names, cross_check=options.cross_check
        )
    except CertificateError as error:
        if options.json:
            print(to_json({"holds": False, "reason": str(error), "problem": statement}))
        else:
            print(f"The certificate does NOT hold: {error}")
        return Exit.REFUTED
    if options.json:
        print(
            to_json(
                {
                    "holds": True,
                    "claim": verification.claim.value,
                    "problem": statement,
                    "options": line,
                    "checked": dict(verification.lines),
                }
            )
        )
    else:
        print(f"problem: {statement}")
        print(f"options: {' '.join(line)}")
        print(verification)
    return Exit.OK
