"""python recipes/digits/prepare.py -o data/digits"""

import sys
from pathlib import Path

from asr.cli.prepare import recipe

if __name__ == "__main__":
    sys.exit(recipe("digits", Path(__file__).with_name("corpus")))
