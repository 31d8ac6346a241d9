"""python recipes/folder/train.py --config FILE... [--key=value as LightningCLI takes it]"""

import sys

from asr.training.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
