"""Fuzz the guards of all objects with new seeds, until interrupted or for a number of rounds."""

import argparse
import itertools
import sys

from rich.console import Console

import fastops
from fastops._specialize import policy
from guards.corpus import SUBJECTS, subject
from guards.fuzz import begin, fuzz


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m guards")
    parser.add_argument("titles", nargs="*", help="parts of the titles of objects; default: all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; default: 0")
    parser.add_argument("--rounds", type=int, help="how many seeds to try; default: no limit")
    parser.add_argument("--most", type=int, help="changes to try of each object; default: all")
    options = parser.parse_args()
    console = Console(stderr=True)
    policy.set_share(0)  # make recordings after one call
    chosen = [
        title
        for title in SUBJECTS
        if not options.titles or any(part.lower() in title.lower() for part in options.titles)
    ]
    failed, never = 0, set()
    seeds = itertools.count(options.seed)
    try:
        for seed in itertools.islice(seeds, options.rounds):
            tried = 0
            with console.status(f"seed {seed}") as status, fastops.accelerated():
                for i, title in enumerate(chosen):
                    status.update(f"seed {seed}: {title} ({i + 1} of {len(chosen)})")
                    begin()
                    replayed, count, differences = fuzz(subject(title), title, seed, options.most)
                    tried += count
                    if not replayed:
                        never.add(title)
                        console.print(f"{title}: no call is replayed")
                    for difference in differences:
                        failed += 1
                        console.print(
                            f"[red]{title}[/red] (seed {seed}): {difference}", soft_wrap=True
                        )
            console.print(
                f"seed {seed}: {tried} changes of {len(chosen)} objects, {failed} differences"
            )
    except KeyboardInterrupt:
        console.print("interrupted")
    if len(never) == len(chosen):
        console.print("[red]nothing is replayed[/red]: no guard was tested")
    return 1 if failed or len(never) == len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
