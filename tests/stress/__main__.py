"""``python -m tests.stress``: many random problems, and what became of them."""

from __future__ import annotations

import argparse
import sys
import time

from tests.stress.courts.judging import Verdict
from tests.stress.run import LIMIT, run_stress


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 1 when anything happened that must not, or Ctrl-C ended it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.stress",
        description="Solve random problems of every kind and check what comes back.",
    )
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--small", action="store_true", help="small problems, three times as fast")
    parser.add_argument(
        "--kinds",
        choices=("all", "plain", "declared"),
        default="all",
        help="plain: regressions and precision matrices; declared: what the language can say",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that count as a hang")
    parser.add_argument("--examples", type=int, default=5, help="faults of a kind to be shown")
    parser.add_argument("--every", type=int, default=0, help="say so after so many problems")
    options = parser.parse_args(arguments)
    if options.problems < 1 or options.jobs < 1:
        parser.error("--problems and --jobs are at least 1")
    began, done, bad = time.monotonic(), 0, 0

    def told(number: int, verdict: Verdict) -> None:
        nonlocal done, bad
        done, bad = done + 1, bad + bool(verdict.faults)
        for fault in verdict.faults:
            sys.stderr.write(f"problem {number}: {fault}\n  {verdict.recipe}\n")
        if options.every and done % options.every == 0:
            spent = time.monotonic() - began
            sys.stderr.write(f"{done} problems, {bad} with a fault, {spent:.0f} s\n")

    tally = run_stress(
        options.problems,
        seed=options.seed,
        first=options.first,
        small=options.small,
        declared={"all": True, "plain": False, "declared": None}[options.kinds],
        jobs=options.jobs,
        limit=options.limit,
        told=told,
    )
    sys.stdout.write(f"seed {options.seed}, {time.monotonic() - began:.0f} s\n")
    tally.report(sys.stdout, examples=options.examples)
    return 1 if tally.faults or tally.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
