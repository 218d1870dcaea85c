"""The stranger's package lies beside its tests; nothing here installs it."""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).parent / "sparsemodel-stranger"

if str(PROJECT) not in sys.path:
    sys.path.append(str(PROJECT))
