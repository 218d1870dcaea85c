"""Change one line at a time, and see whether the tests notice.

``python tests/mutations/run.py`` applies every mutation of ``mutations.toml`` to a copy of the
package and runs the tests that are named with it, which have to fail. A mutation that survives is
a hole in the tests. ``--only WORD ...`` takes those whose file or line holds a word, ``--since
REVISION`` those of files that are not as they were there. At the end is a table of the files.

The test that notices a mutation is written into ``noticed.json`` and is tried first the next time;
only where it passes are all tests of the file run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Queue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOTICED = HERE / "noticed.json"
COPIED = ("sparsemodel", "backends", "tests", "pyproject.toml")
WORDS = ("noticed", "survived", "equivalent")
SECONDS = 600
"""A mutant that is not done by then hangs, which counts as noticed."""


@dataclass(frozen=True)
class Mutation:
    """A piece of a line, what stands there instead, and who should notice."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no test can notice; empty where one has to."""

    def __str__(self) -> str:
        return f"{self.file}: {self.old}  ->  {self.new}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the mutation."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self}: the old line is there {text.count(self.old)} times, not once"
            )
        return text.replace(self.old, self.new)


def mutations() -> list[Mutation]:
    """Return the list that is kept."""
    found = []
    for file, entry in tomllib.loads((HERE / "mutations.toml").read_text("utf-8")).items():
        usual = entry["tests"]
        for old, new, *own in entry.get("mutations", []):
            found.append(Mutation(file, old, new, tuple(own or usual)))
        for old, new, reason in entry.get("equivalent", []):
            found.append(Mutation(file, old, new, tuple(usual), reason))
    return found


def changed(revision: str) -> set[str]:
    """Return the files that differ from those of a commit."""
    command = ["git", "diff", "--name-only", revision]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def table(judged: list[tuple[Mutation, str]]) -> str:
    """Return how many mutations of each file were noticed, survived and are equivalent."""
    files: dict[str, Counter[str]] = {}
    for mutation, word in judged:
        files.setdefault(mutation.file, Counter())[word] += 1
    rows = [("file", *WORDS), ("---", "---:", "---:", "---:")]
    rows += [(f"`{file}`", *(str(n[w]) for w in WORDS)) for file, n in files.items()]
    sums = sum(files.values(), Counter())
    rows.append((f"{len(files)} files", *(str(sums[w]) for w in WORDS)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def copy() -> Path:
    """Return a folder with a copy of the package and its tests."""
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)
    return folder


@contextmanager
def mutated(folder: Path, mutation: Mutation, stamps: Iterator[int]) -> Iterator[None]:
    """Apply a mutation for a while."""
    path = folder / mutation.file
    text, stat = path.read_text("utf-8"), path.stat()
    path.write_text(mutation.applied(text), "utf-8")
    # Compiled files are told apart by times: each mutant has its own, the original keeps its.
    time = int(stat.st_mtime) + next(stamps)
    os.utime(path, (time, time))
    try:
        yield
    finally:
        path.write_text(text, "utf-8")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy, with the copy first on the path."""
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder / 'backends'}"}
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def failing(folder: Path, tests: list[str]) -> list[str]:
    """Return the tests that fail as things are; they cannot notice anything."""
    done = pytest(folder, "-rfE", *tests)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    lines = [line.split(" - ")[0].split(" ", 1) for line in done.stdout.splitlines()]
    return [line[1] for line in lines if line[0] in ("FAILED", "ERROR")]


def first_failure(folder: Path, *arguments: str) -> str | None:
    """Return the first test that fails, None where none does."""
    try:
        done = pytest(folder, "-x", "-rfE", *arguments)
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode == 0:
        return None
    if done.returncode != 1:
        raise RuntimeError(done.stdout + done.stderr)
    lines = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
    return lines[0].split(" - ")[0].split(" ", 1)[1] if lines else ""


def noticed(folder: Path, mutation: Mutation, left_out: list[str], before: str) -> str | None:
    """Return the test that notices the mutation in a copy, None where none does."""
    name = before.partition("::")[0]
    if name and before not in left_out and (folder / name).exists():
        try:
            found = first_failure(folder, before)
        except RuntimeError:  # There is no test of that name now.
            found = None
        if found is not None:
            return found
    return first_failure(folder, *[f"--deselect={test}" for test in left_out], *mutation.tests)


def main() -> int:
    """Run the mutations that were asked for; the exit code says whether all were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[""], help="words of files, lines or mutants")
    parser.add_argument("--since", metavar="REVISION", help="files that changed since a commit")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen = [m for m in mutations() if any(word in str(m) for word in options.only)]
    if options.since:
        files = changed(options.since)
        chosen = [m for m in chosen if m.file in files]
    if not chosen:
        print("no mutation is meant")
        return 0
    for mutation in chosen:
        mutation.applied((ROOT / mutation.file).read_text("utf-8"))
    folders: Queue[Path] = Queue()
    for _ in range(options.jobs):
        folders.put(copy())
    judged: list[tuple[Mutation, str]] = []
    stamps = count(1)
    known = json.loads(NOTICED.read_text("utf-8")) if NOTICED.exists() else {}
    try:
        left_out = failing(folders.queue[0], sorted({t for m in chosen for t in m.tests}))
        for name in left_out:
            print(f"fails without a mutation, left out: {name}", flush=True)

        def judge(mutation: Mutation) -> None:
            folder = folders.get()
            try:
                with mutated(folder, mutation, stamps):
                    by = noticed(folder, mutation, left_out, known.pop(str(mutation), ""))
            finally:
                folders.put(folder)
            if by and by != "no end":
                known[str(mutation)] = by
            kept = WORDS[2] if mutation.equivalent else WORDS[1]
            word = kept if by is None else WORDS[0]
            judged.append((mutation, word))
            print(f"{word:<10}  {mutation}\n            {by or mutation.equivalent}", flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(judge, chosen))
    finally:
        while not folders.empty():
            shutil.rmtree(folders.get(), ignore_errors=True)
    listed = {str(mutation) for mutation in mutations()}
    kept = {name: known[name] for name in sorted(known) if name in listed}
    NOTICED.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    print(table(judged))
    wrong = [(m, word) for m, word in judged if word != (WORDS[2] if m.equivalent else WORDS[0])]
    print(f"{len(chosen)} mutations, {len(wrong)} that are not as the list says")
    for mutation, word in wrong:
        print(f"  {word}: {mutation}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
