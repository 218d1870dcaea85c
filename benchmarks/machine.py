"""What a result has to name: machine, versions, threads, date."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("sparsemodel", "numpy", "scipy", "dask", "scikit-learn")
_PEERS = ("abess", "skscope", "jax", "skglm", "scikit-learn", "l0bnb", "okridge", "el0ps")


def describe() -> dict[str, Any]:
    """Return machine, versions, threads and date."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(_memory_gb(), 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": versions,
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "0"),
        "load": [round(v, 1) for v in os.getloadavg()],
    }


def peer_versions(python: Path | None) -> dict[str, str]:
    """Return the versions that the peers' environment has, by name."""
    if python is None:
        return {}
    code = (
        "import json, sys\n"
        "from importlib.metadata import distributions\n"
        "print(json.dumps({d.metadata['Name']: d.version for d in distributions()}))"
    )
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{python} does not run: {run.stderr.strip()[-200:]}")
    found = {name.lower(): version for name, version in json.loads(run.stdout).items()}
    return {f"{name} (peer)": found[name] for name in _PEERS if name in found}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2**30
