"""python recipes/librispeech/prepare.py [--source DIR] [--subset NAME ...] -o data/librispeech"""

import sys

from asr.cli.prepare import recipe

if __name__ == "__main__":
    sys.exit(recipe("librispeech"))
