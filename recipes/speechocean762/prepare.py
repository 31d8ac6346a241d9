"""python recipes/speechocean762/prepare.py --source DIR -o data/speechocean762"""

import sys

from asr.cli.prepare import recipe

if __name__ == "__main__":
    sys.exit(recipe("speechocean762"))
