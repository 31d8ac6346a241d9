"""python recipes/folder/prepare.py --source DIR -o data/mine [--column KEY=NAME ...]"""

import sys

from asr.cli.prepare import recipe

if __name__ == "__main__":
    sys.exit(recipe("folder"))
