"""python recipes/fsdd/prepare.py --source DIR -o data/fsdd [--leave-out SPEAKER]"""

import sys

from asr.cli.prepare import recipe

if __name__ == "__main__":
    sys.exit(recipe("fsdd"))
