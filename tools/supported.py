"""Write the supported versions of Python and TensorFlow wherever the repository names them.

`fastops/_core/supported.py` has the versions. This tool writes them into pyproject.toml, README.md,
the documentation and the benchmarks. Other code and the tests read that file.

Examples
--------
``python tools/supported.py`` writes the files. ``--check`` changes nothing, and tells whether they
are up to date.
"""

import argparse
import difflib
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.pep517.fastops_build.systems import SUPPORTED  # noqa: E402

PYTHONS = SUPPORTED["PYTHONS"]

RANGE = r"2\.\d+ to 2\.\d+(?: \(and the candidate 2\.\d+\.0rc\d+\))?"
"""A range of versions, such as ``2.19 to 2.21 (and the candidate 2.22.0rc0)``."""


class Place(NamedTuple):
    """A text in a file that names versions."""

    file: str
    pattern: str  # of the text before the versions, and of the versions, in groups
    text: str  # the versions


def span(names):
    """Return the first and the last name: ``2.19 to 2.21``."""
    return f"{names[0]} to {names[-1]}"


def tensorflows():
    """Return the versions of TensorFlow as the text of a sentence."""
    coming = "".join(f" (and the candidate {name})" for name in SUPPORTED["candidates"]().values())
    return span(SUPPORTED["released"]()) + coming


def builds():
    """Return the versions of TensorFlow by distribution, as docs/compatibility.md lists them."""
    newer = [name for name in SUPPORTED["released"]() if name not in SUPPORTED["ONLY_CPU"]]
    newer += SUPPORTED["candidates"]().values()
    older = [name for name in SUPPORTED["released"]() if name in SUPPORTED["ONLY_CPU"]]
    texts = [f"{', '.join(newer)}: `tensorflow` or `tensorflow-cpu`"]
    texts += [f"{', '.join(older)}: `tensorflow-cpu`"] * bool(older)
    return "; ".join(texts)


def places():
    """Return all places that name versions."""
    kind = '    "Programming Language :: Python :: '
    classifiers = "".join(f'{kind}{name}",\n' for name in PYTHONS)
    cpu = SUPPORTED["specifier"]()
    lowest = SUPPORTED["bounds"]()[0]
    minors = "|".join(name.partition(".")[2] for name in SUPPORTED["minors"]())
    newest = next(name for name in reversed(SUPPORTED["RELEASES"]) if "rc" not in name)
    pyproject = [
        ('(tensorflow-cpu)([^"]*)', cpu),
        (r"(tensorflow\[and-cuda\])([^\"]*)", SUPPORTED["specifier"]("tensorflow")),
        (r"(tf_keras>=)([\d.]+)", lowest),
        ('(requires-python = ">=)([^"]*)', PYTHONS[0]),
        (rf'({re.escape(kind)}3",\n)((?:{re.escape(kind)}3\.\d+",\n)+)', classifiers),
        ('(target-version = "py)([^"]*)', PYTHONS[0].replace(".", "")),
    ]
    pythons = r"(Python )(3\.\d+ to 3\.\d+)"
    found = [Place("pyproject.toml", pattern, text) for pattern, text in pyproject]
    found.append(Place("bench/fastops_bench/peers.py", '(tensorflow-cpu)([^"]*)', cpu))
    for file in ("README.md", "docs/index.md", "docs/quickstart.md"):
        found.append(Place(file, rf"(TensorFlow\s+)({RANGE})", tensorflows()))
        found.append(Place(file, pythons, span(PYTHONS)))
    found += [
        Place("CONTRIBUTING.md", pythons, span(PYTHONS)),
        Place("docs/compatibility.md", r"(\n\| Python \| CPython )([^|]*\d)", ", ".join(PYTHONS)),
        Place("docs/compatibility.md", r"(\n\| TensorFlow \| )(2[^|(]*[^|( ])", builds()),
        Place("tools/gpu/__init__.py", r'(TENSORFLOW = ")([^"]*)', newest),
        Place("tools/cross.py", r"('tensorflow==)([^']*)", f"{SUPPORTED['released']()[-1]}.*"),
        Place("docs/releasing.md", r"(git grep -nE '\\b2\\.\()([\d|]*)", minors),
    ]
    return found


def written(file, text):
    """Return the text of a file with the versions; raise `LookupError` for a place without any."""
    for place in places():
        if place.file == file:
            text, count = re.subn(place.pattern, rf"\g<1>{place.text}", text)
            if not count:
                raise LookupError(f"{file} does not have {place.pattern!r}")
    return text


def main(argv=None):
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools/supported.py", description="Write the supported versions where they are named."
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail with a diff if a file is stale"
    )
    options = parser.parse_args(argv)
    status = 0
    for file in dict.fromkeys(place.file for place in places()):
        old = (ROOT / file).read_text()
        new = written(file, old)
        if old == new:
            continue
        if options.check:
            lines = (text.splitlines(True) for text in (old, new))
            print("".join(difflib.unified_diff(*lines, file, "tools/supported.py")), end="")
            status = 1
        else:
            (ROOT / file).write_text(new)
            print(file)
    return status


if __name__ == "__main__":
    sys.exit(main())
