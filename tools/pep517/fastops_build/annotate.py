"""Writes the Cython modules as HTML: the more of a line is Python's, the yellower it is."""

import argparse
import subprocess
from pathlib import Path

from . import needs
from .compile import CYTHON, sources
from .variants import VARIANTS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="fastops._dispatch, ...; all, if none is given")
    arguments = parser.parse_args()
    found = sources()
    directives = [f"-X{key}={value}" for key, value in VARIANTS["release"].directives.items()]
    place = Path("build", "annotated")
    place.mkdir(parents=True, exist_ok=True)
    for name in arguments.modules or found:
        target = place / f"{name}.cpp"
        command, environment = needs.python(*CYTHON, "--annotate", *directives)
        command += [f"--module-name={name}", str(found[name]), "-o", str(target)]
        subprocess.run(command, env=environment, check=True)
        print(target.with_suffix(".html"))


if __name__ == "__main__":
    main()
