"""Draw programs with tapes and compare them with TensorFlow, until interrupted."""

import argparse
import itertools
import sys

from rich.console import Console

from fastops._autodiff import op_gradients, walks
from fastops._specialize import policy
from tapes.compare import Comparison


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tapes")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; default: 0")
    parser.add_argument("--rounds", type=int, help="how many seeds to try; default: no limit")
    parser.add_argument(
        "--examples", type=int, default=200, help="programs of a seed; default: 200"
    )
    options = parser.parse_args()
    console = Console(stderr=True)
    policy.set_share(0)  # make recordings after one call
    comparison, failed = Comparison(), 0
    try:
        for number in itertools.islice(itertools.count(options.seed), options.rounds):
            try:
                with console.status(f"seed {number}"):
                    comparison.search(options.examples, number)
            except Exception as error:
                failed += 1
                console.print_exception()
                console.print(f"[red]seed {number}: {type(error).__name__}[/red]")
            counts = walks.describe()
            console.print(
                f"seed {number}: {comparison.programs} programs so far, {failed} seeds with a "
                f"difference; {counts['replayed']} walks replayed, with {counts['calls']} calls as "
                f"one record; {counts['expanded']} calls expanded; "
                f"{op_gradients.describe()['replayed']} gradient functions replayed"
            )
    except KeyboardInterrupt:
        console.print("interrupted")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
