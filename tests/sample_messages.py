"""Print random messages of errors, to judge by hand: does each state what happened, why, and what to do?

`python tests/sample_messages.py 60 --seed 1` prints 60 of them as the command line words them.
"""

import argparse
import random

from discreet.cli.error_codes import described, error_classes

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows = [described(kind) for kind in error_classes().values()]
    for row in random.Random(asked.seed).sample(rows, min(asked.count, len(rows))):
        print(f"{row['code']}: {row['message']}")
    print(f"{len(rows)} messages in all")
