"""``python -m sparsemodel`` is the command ``sparsemodel``."""

import sys

from sparsemodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
