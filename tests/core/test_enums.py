"""Tuples of names have the order of the enums whose numbers index them."""

import ast
import re
from pathlib import Path

import pytest

from fastops._core import reasons, threads
from fastops._specialize.guards import places

pytestmark = pytest.mark.quick

PACKAGE = Path(reasons.__file__).parents[1]


def numbered(path, name=None, prefix=""):
    """Return the members of an enum in a .pxd, up to the one that counts them, in lower case."""
    begin = f"cdef enum {name}:" if name else f"cdef enum:\n    {prefix}"
    text = (PACKAGE / path).read_text()
    block = re.match(r"(    .*\n)+", text[text.index(begin) :].partition(":\n")[2])[0]
    members = re.findall(rf"^    {prefix}(\w+)", block.partition("    NUM_")[0], re.MULTILINE)
    return [member.lower() for member in members]


def of_options(name):
    """Return the members of an enum in options.h, in lower case."""
    text = (PACKAGE / "_cpp/options.h").read_text()
    members = re.search(rf"enum class {name} : char {{(.+)}};", text)[1]
    return [member.lower() for member in re.findall(r"\bk(\w+)", members)]


def names_of_states():
    """Return the names of states, as `name_of_state` has them."""
    text = (PACKAGE / "_specialize/states.pxd").read_text()
    return ast.literal_eval(re.search(r"return (\(.+\))\[<int>state\]", text)[1])


@pytest.mark.parametrize(
    ("names", "members"),
    [
        (reasons.PATHS, numbered("_core/reasons.pxd", prefix="P_")),
        ([reason.id for reason in reasons.REASONS], numbered("_core/reasons.pxd", prefix="R_")),
        (threads._PATHS, of_options("Path")),
        (threads.ON_FALLBACK, of_options("OnFallback")),
        (threads.THREADS, of_options("Threads")),
        (names_of_states(), numbered("_specialize/states.pxd", "State")),
        (places.KINDS, numbered("_specialize/guards/watch.pxd", "Kind")),
    ],
    ids=["paths", "reasons", "chosen paths", "on_fallback", "threads", "states", "places"],
)
def test_numbers_are_in_the_order_of_names(names, members):
    assert len(members) > 2
    assert [*names] == members
