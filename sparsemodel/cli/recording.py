"""What a certificate file of the command line says beside the certificate: how to declare the
problem again from the data.

The recipe is the options of ``solve`` that define the problem. It is read back by the same
parser, which knows no option that would read or write another file; a recipe that was tampered
with declares another problem, and the certificate does not fit it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparsemodel.cli.options import add_data, add_model, recorded
from sparsemodel.interfaces import CertificateError

KEY = "recipe"


class _Quiet(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise CertificateError(f"line '{KEY}': {message}.")


def problem_parser(
    add: Callable[[argparse.ArgumentParser], None] | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of the options that define a problem, and of nothing else.

    ``add`` declares them; None is for regressions.
    """
    parser = _Quiet(add_help=False, allow_abbrev=False)
    if add is None:
        add_data(parser)
        add_model(parser)
    else:
        add(parser)
    return parser


def with_recipe(
    certificate: Any,
    arguments: argparse.Namespace,
    parser: argparse.ArgumentParser | None = None,
) -> dict[str, Any]:
    """Return the certificate as plain data with the recipe, under one digest."""
    from sparsemodel.certificates.files.regression_file import digest

    body: dict[str, Any] = certificate.to_dict()
    body[KEY] = recorded(parser or problem_parser(), arguments)
    body["digest"] = digest(body)
    return body


def is_about_a_graph(file: Path) -> bool:
    """Return whether a file says that it certifies a precision matrix."""
    from sparsemodel.certificates.files.regression_file import read_text
    from sparsemodel.certificates.precision_matrices.precision_file import FORMAT

    try:
        body = json.loads(read_text(file)[0])
    except (CertificateError, ValueError, RecursionError):
        return False  # reading it as a certificate says what is wrong
    return isinstance(body, dict) and body.get("format") == FORMAT


def recipe_of(file: Path) -> list[str] | None:
    """Return the options a certificate file was made with; None where it does not say.

    Raises
    ------
    CertificateError
        When what it says is not a list of texts.
    """
    from sparsemodel.certificates.files.regression_file import read_text

    try:
        body = json.loads(read_text(file)[0])
    except CertificateError:
        raise
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{file} is not a certificate in JSON ({error}).") from error
    options = body.get(KEY) if isinstance(body, dict) else None
    if options is None:
        return None
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise CertificateError(f"{file}: line '{KEY}' must be a list of options.")
    return options


__all__ = ["is_about_a_graph", "problem_parser", "recipe_of", "with_recipe"]
