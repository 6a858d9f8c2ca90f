"""Write the lists of functions of Keras's backend in docs/keras_backend.md.

python tools/keras_adapter.py            # write python tools/keras_adapter.py --check    # check
that it is up to date
"""

import sys
import textwrap
from pathlib import Path

from fastops._backend.adapter.table import MISSING, NATIVE

PAGE = Path(__file__).parents[1] / "docs" / "keras_backend.md"
BEGIN = "<!-- Written by tools/keras_adapter.py. -->"
END = "<!-- The end of what it writes. -->"


def sections():
    """Return the lists of native functions and of Keras's own functions, as Markdown."""
    lines = ["### What fastops runs", ""]
    for module, text in NATIVE.items():
        names = text.split()
        listed = ", ".join(f"`{name}`" for name in names)
        lines += textwrap.wrap(f"**{module}**, {len(names)}: {listed}.", 98), ""
    lines += ["### What is Keras's own", "", "| module | functions | why |", "| --- | --- | --- |"]
    for module, reasons in MISSING.items():
        for names, why in reasons.items():
            listed = " ".join(f"`{name}`" for name in names.split())
            lines.append(f"| {module} | {listed} | {why} |")
    flat = [part for line in lines for part in (line if isinstance(line, list) else [line])]
    return "\n".join(flat)


def written(page):
    """Return the page with these sections."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{sections()}\n\n{END}{after}"


def main(arguments):
    page = PAGE.read_text()
    if "--check" in arguments:
        if page != written(page):
            print("docs/keras_backend.md is stale: python tools/keras_adapter.py writes it")
            return 1
        return 0
    PAGE.write_text(written(page))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
