"""python recipes/folder/evaluate.py MANIFEST -m BUNDLE [options of `asr evaluate`]"""

import sys

from asr.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
