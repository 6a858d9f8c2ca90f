"""Write the Cython modules as HTML, in which lines that call Python are yellow."""

import argparse
from pathlib import Path

from .compile import sources
from .translate import translate
from .variants import VARIANTS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as fastops._dispatch; default: all")
    arguments = parser.parse_args()
    found = sources()
    place = Path("build", "annotated")
    place.mkdir(parents=True, exist_ok=True)
    modules = [
        (name, str(found[name]), str(place / f"{name}.cpp")) for name in arguments.modules or found
    ]
    for name in translate(modules, VARIANTS["release"].directives, annotate=True):
        print(place / f"{name}.html")


if __name__ == "__main__":
    main()
