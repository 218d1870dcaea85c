"""The command ``sparsemodel``: solve, certify and verify from a shell.

Every subcommand is a module of ``commands`` with ``Options``, a dataclass that declares its part of
the command line, and ``run``, which takes one.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from sparsemodel.cli.exits import Exit, code_of, one_line
from sparsemodel.cli.parser import build_parser, parse
from sparsemodel.cli.printing import encodable
from sparsemodel.cli.printing import message as plain


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line on standard error.

    Parameters
    ----------
    argv
        The arguments without the program's name; None takes those of the process.

    Examples
    --------
    >>> from sparsemodel.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    sparsemodel ...
    0
    """
    _open_streams()
    try:
        call = parse(argv)
    except SystemExit as stop:  # --help, --version, or a line that cannot be parsed
        return int(stop.code or 0)
    if call is None:
        print(build_parser().format_help(), end="", file=sys.stderr)
        return int(Exit.USAGE)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = call.run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed it; the interpreter must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.INTERRUPTED_OUTPUT)
    except (Exception, KeyboardInterrupt) as error:
        if call.common.traceback:
            raise
        print(f"sparsemodel {call.command}: {one_line(error)}", file=sys.stderr)
        return int(code_of(error))
    return status


def _open_streams() -> None:
    """Put the null device where a standard stream is closed, and let the others write anything.

    A file that is opened while a stream is closed would get its number, and what is printed.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        number = os.open(os.devnull, os.O_RDWR)
        while number <= 2:
            number = os.dup(number)
        os.close(number)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    encodable(sys.stdout)
    encodable(sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning on one line, without the line of code it comes from."""
    print(f"sparsemodel: warning: {plain(str(message))}", file=sys.stderr)


__all__ = ["main"]
