"""Make the environment of the peers: ``python benchmarks/peers/make_environment.py FOLDER``.

Each is installed on its own, so that one that does not install keeps nobody out; what is missing
is named at the end and in the results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

PEERS = {
    "scikit-learn": [],
    "abess": [],
    "skscope": [],
    "skglm": [],
    "el0ps": [],
    "l0bnb": [],
    # Pins an old NumPy and forgets a dependency; works without its pins.
    "okridge": ["--no-deps"],
}


def main(folder: Path) -> int:
    """Create ``folder`` and install what can be installed."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    missing = {}
    for name, options in PEERS.items():
        run = subprocess.run([*pip, *options, name], capture_output=True, text=True, check=False)
        if run.returncode:
            lines = run.stderr.strip().splitlines()
            missing[name] = lines[-1] if lines else "failed"
    subprocess.run([*pip, "requests", "psutil"], check=False)
    # El0ps runs without MPI, but not with an mpi4py that finds no library.
    subprocess.run([*pip[:-2], "uninstall", "--quiet", "--yes", "mpi4py"], check=False)
    for name, why in missing.items():
        print(f"not installed: {name} ({why})")
    print(f"interpreter: {folder / 'bin' / 'python'}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Install the peers into an environment of their own."
    )
    parser.add_argument("folder", type=Path, help="where to make it")
    sys.exit(main(parser.parse_args().folder))
