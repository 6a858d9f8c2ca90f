"""After each change of what an object holds, its calls give the same as TensorFlow's own."""

import keras
import pytest
from support import one_in

import fastops
from guards.corpus import ELSEWHERE, LAYERS, SUBJECTS, subject
from guards.declared import REFUSED, UNPROVEN
from guards.fuzz import begin, fuzz

CHANGES = 6
"""The number of changes to try of each Keras object. Of code of users, all changes are tried."""
CHANGES_OF_USERS = 24
"""The number of changes to try of each of the objects in `users`, which hold many objects."""
DECLARED = [title for title in SUBJECTS if title.startswith("declared")]
OF_USERS = [title for title in SUBJECTS if title.startswith(("module", "user"))]
PROVEN = OF_USERS + [title for title in SUBJECTS if title.startswith(("lambda", "undeclared"))]
OF_KERAS = [title for title in SUBJECTS if title not in DECLARED + PROVEN]

UNRECORDED = {
    *("CategoryEncoding", "CenterCrop", "Discretization", "Equalization", "MelSpectrogram"),
    *("Normalization", "RandomContrast", "RandomFlip", "RandomRotation", "Rescaling", "Resizing"),
    *("Solarization",),  # has its own `__call__`
    "SparseCategoricalFocalCrossentropy",  # since Keras 3.16; has its own `__call__`
}
"""Classes of Keras whose calls are not replayed."""


@pytest.mark.parametrize("title", [*one_in(4, OF_KERAS), *one_in(2, [*DECLARED, *PROVEN])])
def test_changes_are_seen(title):
    begin()
    most = CHANGES if title in OF_KERAS else CHANGES_OF_USERS if title in OF_USERS else None
    with fastops.accelerated():
        replayed, tried, differences = fuzz(subject(title), title, most=most)
    assert not differences, "\n".join(differences)
    assert tried
    name = title.rpartition(" ")[2]
    unproven = UNPROVEN if title.startswith("undeclared") else set()
    assert bool(replayed) == (name not in REFUSED | UNRECORDED | unproven)


def test_the_corpus_has_all_layers():
    named = vars(keras.layers)
    there = {
        kind for kind in named.values() if isinstance(kind, type) and issubclass(kind, keras.Layer)
    }
    assert there == {named[name] for name in LAYERS | ELSEWHERE}
