"""``python -m asr.training`` is ``asr train``."""

import sys

from asr.training.cli import main

if __name__ == "__main__":
    sys.exit(main())
