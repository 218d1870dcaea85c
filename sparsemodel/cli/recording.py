"""What a certificate file of the command line says beside the certificate: how to declare the
problem again from the data.

The recipe is the options of ``solve`` that define the problem. It is read back by the same
parser, which knows no option that would read or write another file; a recipe that was tampered
with declares another problem, and the certificate does not fit it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from sparsemodel.cli.declaring import parsed, recorded
from sparsemodel.cli.files import write_text, written
from sparsemodel.cli.options import OutputOptions
from sparsemodel.interfaces import CertificateError

KEY = "recipe"

T = TypeVar("T")


class _Quiet(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise CertificateError(f"line '{KEY}': {message}.")


def read_recipe(kind: type[T], line: list[str]) -> T:
    """Return the options that define a problem, and no others, from a command line."""
    return parsed(kind, _Quiet(add_help=False, allow_abbrev=False), line)


def with_recipe(certificate: Any, options: Any) -> dict[str, Any]:
    """Return the certificate as plain data with the options of its problem, under one digest."""
    from sparsemodel.certificates.files.json_document import signed

    return signed(certificate.to_dict() | {KEY: recorded(options)})


def save(
    certificate: Any,
    options: Any,
    output: OutputOptions,
    *,
    about: Mapping[str, str],
    data: str,
) -> None:
    """Write the certificate for people, and for ``verify`` with the options of its problem."""
    report, record, overwrite = output.report, output.certificate, output.overwrite
    if report is not None:
        name = "certificate.json" if record is None else record.name
        command = f"sparsemodel verify {name} --data {Path(data).name}" if record else ""
        with written(report, overwrite=overwrite) as temporary:
            certificate.report(temporary, about=about, record=name, command=command)
    if record is not None:
        text = json.dumps(with_recipe(certificate, options), indent=1, ensure_ascii=False)
        write_text(record, text + "\n", overwrite=overwrite)


def opened(file: Path) -> tuple[Any, list[str] | None]:
    """Return the certificate in a file and the options it was made with, None where it lacks them.

    Raises
    ------
    CertificateError
        When the file holds no certificate, or its options are not a list of texts.
    """
    from sparsemodel.certificates import Certificate, PrecisionCertificate
    from sparsemodel.certificates.files.json_document import read_text

    text, name = read_text(file)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None  # reading it as a certificate says what is wrong
    about = body if isinstance(body, dict) else {}
    graph = about.get("format") == PrecisionCertificate.FORMAT
    kind: Any = PrecisionCertificate if graph else Certificate
    certificate, options = kind.from_json(text, where=name), about.get(KEY)
    if options is None:
        return certificate, None
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise CertificateError(f"{file}: line '{KEY}' must be a list of options.")
    return certificate, options
