"""Ask the peers' interpreter to solve a generated problem."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.measure import Record, Timing
from benchmarks.options import Options

_WORKER = Path(__file__).with_name("worker.py")


def ask(options: Options, task: dict[str, Any], *, seconds: float = 900.0) -> list[dict[str, Any]]:
    """Return what the worker reported; what it had no time for is left out and said so."""
    if options.peers is None:
        return []
    command = [str(options.peers), str(_WORKER), json.dumps(task)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        output = run.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout.decode() if isinstance(late.stdout, bytes) else (late.stdout or "")
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    reported = {line["solver"] for line in lines}
    missing = [name for name in task["solvers"] if name not in reported]
    return lines + [
        {"solver": name, "failure": f"did not finish within {seconds:g} s"} for name in missing
    ]


def records(family: str, case: str, lines: list[dict[str, Any]]) -> list[Record]:
    """Return a record for each line; failures keep their reason."""
    out = []
    for line in lines:
        if "failure" in line:
            nothing = Timing(float("nan"), float("nan"), float("nan"), 0)
            out.append(
                Record(family, case, line["solver"], {}, nothing, 1.0, notes=line["failure"])
            )
            continue
        timing = Timing(line["cpu"], line["wall"], line["cpu_min"], line["repeats"])
        out.append(Record(family, case, line["solver"], line["quality"], timing, line["unit"]))
    return out
