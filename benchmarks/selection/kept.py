"""Draws that are worked on side by side, and kept in a file that a later run goes on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed  # type: ignore[import-untyped]

from benchmarks.selection.draws import Case

Task = tuple[Case, int]
"""What is drawn, and the seed."""


def every(
    tasks: Sequence[Task], compute: Callable[[Case, int], Any], path: Path, jobs: int
) -> dict[Task, Any]:
    """Return what ``compute`` gives for each task: from the file, or computed and added to it."""
    known: dict[Task, Any] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            case, seed, value = json.loads(line)
            known[Case(*case), seed] = value
    left = [task for task in tasks if task not in known]
    done = Parallel(n_jobs=jobs, return_as="generator")(delayed(compute)(*task) for task in left)
    path.parent.mkdir(parents=True, exist_ok=True)
    for task, value in zip(left, done, strict=True):
        known[task] = value
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*task, value]) + "\n")
        print(*task, value, flush=True)
    return {task: known[task] for task in tasks}


__all__ = ["Task", "every"]
