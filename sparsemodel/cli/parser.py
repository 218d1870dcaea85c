"""The parser of the command line; a subcommand's module is loaded when the parser is built."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, final

from sparsemodel._version import __version__
from sparsemodel.cli.commands import (
    backends,
    demo,
    explain,
    path,
    precision,
    predict,
    solve,
    verify,
)
from sparsemodel.cli.declaring import add_options, flag, from_namespace
from sparsemodel.cli.printing import message as plain
from sparsemodel.cli.printing import table
from sparsemodel.interfaces.errors import closest

COMMANDS = (demo, solve, predict, path, precision, explain, verify, backends)

_DESCRIPTION = """\
Sparse models with a certificate: fit a model with at most k nonzero coefficients, and learn how
much better any other such model could be.
"""

_EPILOG = """\
start here:
  sparsemodel demo                                  a problem from end to end, on real data
  sparsemodel solve houses.csv --target price --k 8
  sparsemodel solve --help                          help on losses, k and the output

exit codes:
  0  done                          5  an optional package or backend is missing
  1  the output pipe was closed    6  an output file exists or cannot be written
  2  the command line is wrong     7  verify: the certificate does not hold
  3  a file or its data are bad    70 a bug, here or in a plug-in
  4  the problem has no solution   130 interrupted
"""


_LIMIT = "--k (--ks of path, --edges of precision)"
_ELSEWHERE = {
    **dict.fromkeys(("--cardinality", "--card", "--sparsity", "--nonzeros", "--nnz"), _LIMIT),
    **dict.fromkeys(("--sep", "--separator"), "--delimiter"),
    **dict.fromkeys(("--label", "--y"), "--target"),
}
"""Options of this command line, by what others call them."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with room for the names of options and commands."""

    def __init__(self, prog: str) -> None:
        width = min(96, shutil.get_terminal_size().columns - 2)
        super().__init__(prog, max_help_position=26, width=width)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and say where the help is."""

    commands: Mapping[str, Any] = MappingProxyType({})
    """The parsers of commands, by name."""

    def error(self, message: str) -> NoReturn:
        strange = re.fullmatch(r"unrecognized arguments: (--?[A-Za-z][\w-]*).*", message)
        unknown = re.fullmatch(r"argument COMMAND: invalid choice: '(.*?)' .*", message)
        if strange:
            owners = [
                name
                for name, one in self.commands.items()
                if strange[1] in one._option_string_actions
            ]
            known = self._known()
            meant = "--" + strange[1].lstrip("-")  # -k is short for nothing, and --k is meant
            longer = [one for one in known if one.startswith(meant.removesuffix("s"))]
            close = closest(meant, longer or known, cutoff=0.0 if longer else 0.5)
            close = _ELSEWHERE.get(meant.lower(), close)
            message += f"; did you mean {close}?" if close and not owners else ""
            message += f"; it is an option of {' and '.join(owners)}" if owners else ""
        if unknown:
            close = closest(unknown[1], self.commands)
            message += f"; did you mean {close}?" if close else ""
        self.exit(2, f"{self.prog}: {plain(message)} (see {self.prog} --help)\n")

    def _known(self) -> set[str]:
        """Return the options of this parser and of the commands in it."""
        found = set(re.findall(r"--[\w-]+", self.format_help()))
        return found.union(*(command._known() for command in self.commands.values()))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every command knows."""

    traceback: bool = flag("show where an error came from (for bug reports)")


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A command with its options, not run yet."""

    command: str
    common: Common
    run: Callable[[], int]


def parse(argv: Sequence[str] | None) -> Call | None:
    """Return what is called; None where no command is named.

    Raises
    ------
    SystemExit
        After ``--help`` and ``--version``, and when the line is invalid.
    """
    module = (namespace := build_parser().parse_args(argv)).module
    if module is None:
        return None
    options = from_namespace(module.Options, namespace)
    return Call(module.NAME, from_namespace(Common, namespace), lambda: int(module.run(options)))


def build_parser() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="sparsemodel",
        usage="sparsemodel [--help] [--version] COMMAND ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sparsemodel {__version__}")
    parser.set_defaults(module=None)
    commands: Any = parser.add_subparsers(
        prog="sparsemodel",
        metavar="COMMAND",
        title="commands",
        description=table([(module.NAME, module.SUMMARY) for module in COMMANDS]),
        help=argparse.SUPPRESS,
    )
    for module in COMMANDS:
        made = commands.add_parser(
            module.NAME,
            usage=f"sparsemodel {module.USAGE}",
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=_Help,
            allow_abbrev=False,
        )
        add_options(made, Common)
        add_options(made, module.Options)
        made.set_defaults(module=module)
    parser.commands = commands.choices
    return parser
