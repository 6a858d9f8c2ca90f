"""Write the tables of reasons in docs/semantics.md, from `fastops._core.reasons.REGISTRY`.

``make gen`` runs it. ``--check`` writes nothing, prints differences, and fails if there are any.
"""

import argparse
import difflib
import re
import sys
from pathlib import Path

from fastops._core.reasons import AREAS, PATHS, REGISTRY

PAGE = Path(__file__).parents[1] / "docs" / "semantics.md"

MARKED = re.compile(r"(<!-- reasons: (\w+) -->\n).*?(<!-- /reasons -->)", re.DOTALL)


def table(area):
    """Return the table of an area."""
    reasons = [reason for reason in REGISTRY.values() if reason.area == area]
    if area == "op":
        rows = [("reason", "meaning", "path", "what to do"), ("---",) * 4]
        rows += [(f"`{of.id}`", of.sentence, path_of(of), of.hint) for of in reasons]
    else:
        rows = [("id", "reason", "what it means, or what to do"), ("---",) * 3]
        rows += [(f"`{of.id}`", of.sentence, of.hint) for of in reasons]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def path_of(reason):
    """Return the path of the calls of ops that have a reason, as a cell of the table."""
    return f"`{reason.path}`" if reason.path in PATHS else reason.path


def page(text):
    """Return the page with all tables as they should be."""
    written = set()

    def replaced(match):
        written.add(match[2])
        return match[1] + table(match[2]) + match[3]

    text = MARKED.sub(replaced, text)
    if missing := AREAS.keys() - written:
        raise ValueError(f"{PAGE.name} has no place for the reasons of {sorted(missing)}")
    return text


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="tools/reasons.py", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if out of date")
    options = parser.parse_args(argv)
    old = PAGE.read_text()
    new = page(old)
    if options.check:
        print("".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True))), end="")
        return int(old != new)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
