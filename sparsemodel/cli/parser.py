"""The parser of the command line; a subcommand's module is loaded when the parser is built."""

from __future__ import annotations

import argparse
import shutil
from typing import NoReturn

from sparsemodel._version import __version__
from sparsemodel.cli.commands import backends, demo, explain, path, precision, solve, verify
from sparsemodel.cli.plain import message as plain

_COMMANDS = (demo, solve, path, precision, explain, verify, backends)

_DESCRIPTION = """\
Sparse models with a certificate: fit a model with at most k nonzero coefficients, and learn how
much better any other such model could be.
"""

_EPILOG = """\
start here:
  sparsemodel demo                                  a problem from end to end, on real data
  sparsemodel solve houses.csv --target price --k 8
  sparsemodel solve --help                          which loss, which k, what the output means

exit codes:
  0  done                          5  an optional package or backend is missing
  1  the reader of a pipe left     6  an output file exists or cannot be written
  2  the command line is wrong     7  verify: the certificate does not hold
  3  a file or its data are bad    70 a bug, here or in a plug-in
  4  the problem has no solution   130 interrupted
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with room for the names of options and commands."""

    def __init__(self, prog: str) -> None:
        width = min(96, shutil.get_terminal_size().columns - 2)
        super().__init__(prog, max_help_position=26, width=width)
        self._action_max_length = len("    precision")  # argparse forgets to indent commands


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and say where the help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {plain(message)} (see {self.prog} --help)\n")


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="sparsemodel",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sparsemodel {__version__}")
    common = Parser(add_help=False)
    common.add_argument(
        "--traceback", action="store_true", help="show where an error came from (for bug reports)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in _COMMANDS:
        made = commands.add_parser(
            module.NAME,
            usage=f"sparsemodel {module.USAGE}",
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=_Help,
            allow_abbrev=False,
            parents=[common],
        )
        module.add(made)
        made.set_defaults(run=module.run)
    return parser


__all__ = ["Parser", "build_parser"]
