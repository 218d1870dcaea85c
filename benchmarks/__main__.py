"""Run the benchmarks: ``python -m benchmarks [FAMILY ...] [--peers PYTHON] [--threads 1 2]``.

Every family runs in a process of its own for each number of threads, because BLAS reads
``OPENBLAS_NUM_THREADS`` once, at the start, and so that peaks of memory are its own. What it
found is written when it ends, and the page is made from all results in the folder: a run of one
family renews that family's part. A family that fails or takes too long is named on the page.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from benchmarks import machine
from benchmarks.families import NAMES, THREADED
from benchmarks.measure import NothingToMeasure
from benchmarks.options import Options
from benchmarks.report import save, write_page

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_GRACE = 20.0
"""Seconds that a family which takes too long has to remove its files."""


def main() -> int:
    """Run the families asked for (all without any) and write the page with its plots."""
    arguments = _parser().parse_args()
    if arguments.worker:
        return _worker(arguments)
    unknown = [name for name in arguments.families if name not in NAMES]
    if unknown:
        raise SystemExit(f"There is no family {unknown[0]!r}; there are {', '.join(NAMES)}.")
    tasks = [
        (family, threads)
        for threads in dict.fromkeys(arguments.threads)
        for family in arguments.families or (NAMES if threads == 1 else THREADED)
    ]
    began, failed = time.perf_counter(), []
    peers = machine.peer_versions(arguments.peers)
    with tempfile.TemporaryDirectory(prefix="benchmarks-", dir=arguments.data_folder) as folder:
        for number, (family, threads) in enumerate(tasks, start=1):
            label = f"[{number}/{len(tasks)}] {family}, threads: {threads or 'as they are'}"
            print(f"{label} ...", flush=True)
            clock = time.perf_counter()
            result = _spawn(family, threads, arguments, Path(folder))
            result["machine"]["versions"] |= peers
            result["seconds"] = round(time.perf_counter() - clock, 1)
            save(arguments.out, f"{family}-{threads}", result)
            write_page(arguments.out)
            if "failure" in result:
                failed.append(family)
                print(f"{label}: {result['failure']}", file=sys.stderr, flush=True)
            ended = result.get("nothing", f"{result['seconds']:.0f} s")
            print(f"{label}: {ended}", flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all; the page: {write_page(arguments.out)}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="the smallest case of each family")
    parser.add_argument("--repeats", type=int, default=5, help="timings of each solve")
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[1, 0],
        help="of BLAS: 1 and 0 without, 0 for what it takes by itself, beside 1 where they matter",
    )
    parser.add_argument("--peers", type=Path, help="interpreter of the peers' environment")
    parser.add_argument(
        "--data-folder",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where the out-of-core file is made, and removed again",
    )
    parser.add_argument("--gigabytes", type=float, default=4.0, help="size of that file")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for each family")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def _spawn(family: str, threads: int, arguments: argparse.Namespace, folder: Path) -> dict:  # type: ignore[type-arg]
    """Return what the family's own process reports, or why there is nothing."""
    environment = {name: value for name, value in os.environ.items() if name not in _THREADS}
    environment |= {name: str(threads) for name in _THREADS if threads}
    command = [sys.executable, "-m", "benchmarks", family, "--worker"]
    command += ["--repeats", str(arguments.repeats), "--gigabytes", str(arguments.gigabytes)]
    command += ["--data-folder", str(folder)]
    command += ["--quick"] if arguments.quick else []
    command += ["--peers", str(arguments.peers)] if arguments.peers else []
    about = machine.describe() | {"threads": str(threads)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=arguments.limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return _failure(family, about, f"not finished within {arguments.limit:g} s")
        except BaseException:
            _end(process)
            raise
    lines = output.splitlines()
    if process.returncode or not lines:
        return _failure(family, about, f"failed with exit code {process.returncode}")
    return dict(json.loads(lines[-1]))


def _failure(family: str, about: dict, why: str) -> dict:  # type: ignore[type-arg]
    return {"family": family, "machine": about, "records": [], "failure": why}


def _end(process: subprocess.Popen[str]) -> None:
    """End the family's process and the peers it started; first kindly, for the sake of its file."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GRACE)
            return


def _worker(arguments: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, _leave)
    options = Options(
        quick=arguments.quick,
        repeats=1 if arguments.quick else arguments.repeats,
        peers=arguments.peers,
        scratch=arguments.data_folder,
        gigabytes=arguments.gigabytes,
    )
    about, (family,) = machine.describe(), arguments.families
    module = importlib.import_module(f"benchmarks.families.{family}")
    result: dict[str, object] = {"family": family, "machine": about, "records": []}
    try:
        result["records"] = [record.to_dict() for record in module.run(options)]
    except NothingToMeasure as nothing:
        result["nothing"] = str(nothing)
    print(json.dumps(result, default=str), flush=True)
    return 0


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # so that files are removed on the way out


if __name__ == "__main__":
    sys.exit(main())
