"""Run the benchmarks: ``python -m benchmarks [FAMILY ...] [--peers PYTHON] [--threads 1 2]``.

Every family runs in a process of its own for each number of threads, because BLAS reads
``OPENBLAS_NUM_THREADS`` once, at the start, and so that peaks of memory are its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import machine
from benchmarks.families import NAMES
from benchmarks.options import Options

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main() -> int:
    """Run the families asked for (all without any) and write tables and plots."""
    arguments = _parser().parse_args()
    if arguments.worker:
        return _worker(arguments)
    from benchmarks.report import markdown, save

    for threads in arguments.threads:
        rows, about = [], {}
        for family in arguments.families or NAMES:
            result = _spawn(family, threads)
            if result is None:
                continue
            about = result["machine"]
            rows += result["records"]
            save(arguments.out, f"{family}-{threads}", result["records"], about)
        if rows:
            text = markdown(rows, about)
            (arguments.out / f"results-{threads}.md").write_text(text + "\n")
            print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="the smallest case of each family")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--peers", type=Path, help="interpreter of the peers' environment")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--gigabytes", type=float, default=4.0, help="out-of-core file")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def _spawn(family: str, threads: int) -> dict | None:  # type: ignore[type-arg]
    if family not in NAMES:
        raise SystemExit(f"unknown family {family!r}; there are {', '.join(NAMES)}")
    environment = dict(os.environ) | {name: str(threads) for name in _THREADS}
    rest = [a for a in sys.argv[1:] if a not in NAMES]
    command = [sys.executable, "-m", "benchmarks", family, *rest, "--worker"]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        print(f"{family}: failed", file=sys.stderr)
        return None
    return dict(json.loads(run.stdout.splitlines()[-1]))


def _worker(arguments: argparse.Namespace) -> int:
    options = Options(
        quick=arguments.quick,
        repeats=1 if arguments.quick else arguments.repeats,
        peers=arguments.peers,
        scratch=arguments.scratch,
        gigabytes=arguments.gigabytes,
    )
    about = machine.describe()
    module = importlib.import_module(f"benchmarks.families.{arguments.families[0]}")
    records = [record.to_dict() for record in module.run(options)]
    print(json.dumps({"machine": about, "records": records}, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
