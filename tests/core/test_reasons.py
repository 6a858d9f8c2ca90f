"""The registry of reasons: the sources use exactly its ids, and sentences have no particulars."""

import re
from pathlib import Path

import pytest

from fastops._core import reasons
from fastops._specialize.recording import instructions
from fastops._specialize.recording.plain import UnprovenError

pytestmark = pytest.mark.quick


def test_each_reason_of_a_call_has_a_path_and_a_hint():
    for reason in reasons.REGISTRY.values():
        assert bool(reason.path) == (reason.area == "op"), reason
        assert reason.hint or reason.area != "op", reason
        assert reason.path in ("", "as asked", *reasons.PATHS), reason


# Reasons that sources give by their ids ----------------------------------------------------------

PACKAGE = Path(reasons.__file__).parents[1]


def sources():
    """Yield the source text of each module that gives reasons."""
    for part in ("_autodiff", "_plans", "_graphs", "_install", "_specialize"):
        for path in sorted((PACKAGE / part).rglob("*.py*")):
            if path.suffix in (".py", ".pyx"):
                yield path.read_text()
    yield (PACKAGE / "_situation.pyx").read_text()


def given():
    """Return the ids of reasons that sources give."""
    call = re.compile(
        r"(?:RefusedError|UnplannedError|NotReplayableError|StateError|UnprovenError|MissingNameError"
        r"|text_of|advice|self\.note|\.refuse)\(\s*[\"'](\w+)[\"']|"
        r"obstacle = \(?\"(\w+)\",|objection = \(\"(\w+)\",|\(REFUSED, \(\"(\w+)\""
    )
    found = {name for text in sources() for names in call.findall(text) for name in names if name}
    return found.union(instructions._REFUSED.values())


def test_the_sources_give_exactly_the_registered_reasons():
    numbered = {reason.id for reason in reasons.REASONS}  # sources give these by their numbers
    assert given() == reasons.REGISTRY.keys() - numbered


def test_sentences_differ_and_contain_no_particulars():
    known = [*reasons.REGISTRY.values()]
    sentences = {reason.sentence for reason in known}
    assert len(sentences) == len(known)
    assert {reason.area for reason in known} == reasons.AREAS.keys()
    assert not [sentence for sentence in sentences if "{" in sentence or sentence.endswith(".")]


def test_particulars_follow_the_sentence():
    error = reasons.RefusedError("too_many_ops", 513)
    assert str(error) == "the call runs too many ops: 513"
    assert (error.sentence, error.detail) == ("the call runs too many ops", 513)
    assert reasons.text_of("logs") == "the call logs or warns"


def test_advice_ends_with_the_hint():
    error = UnprovenError("assigns_attribute", "count")
    assert str(error) == (
        "the code assigns to an attribute: count (return the value, or keep it in a tf.Variable)"
    )
    assert (error.name, error.detail) == ("assigns_attribute", "count")
    assert reasons.advice("generator") == "the code is a generator (return a list)"
    silent = {of.id for of in reasons.REGISTRY.values() if of.area == "proof" and not of.hint}
    assert silent == {"not_python"}
