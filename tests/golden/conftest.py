"""The instances of the papers are those of the benchmarks, which are in the source tree only."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
