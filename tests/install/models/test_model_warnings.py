"""Calls that warn: replays issue the same warnings, for the same lines."""

import io
import logging
import warnings
from unittest import mock

import keras
import pytest
import tensorflow as tf
from install.models.keras_programs import CALLS, compare, floats, outcome, probe, told
from keras.src.optimizers import base_optimizer
from support import python

import fastops

pytestmark = pytest.mark.filterwarnings("default::UserWarning")


def started():
    """Return an optimizer that a call has built, gradients of which one is None, and variables."""
    variables = [keras.Variable(floats(3, 2), name="first"), keras.Variable(floats(2), name="last")]
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(variables)
    return optimizer, [None, floats(2, seed=1)], variables


def described(caught):
    """Return the parts of warnings that `warnings.catch_warnings` has caught."""
    return [
        (str(one.message), one.category, one.filename, one.lineno, one.line, one.source)
        for one in caught
    ]


def forget():
    """Have Python issue warnings again that it has issued once."""
    vars(base_optimizer).pop("__warningregistry__", None)


ACTIONS = ["always", "default", "module", "once", "ignore", "error"]


@pytest.mark.parametrize("action", ACTIONS)
def test_a_step_with_missing_gradients(action):
    """The optimizer warns in each step; the filters decide what becomes of it."""

    def program():
        optimizer, gradients, variables = started()
        forget()
        probe(optimizer, "apply")
        for _ in range(CALLS):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(action)
                yield outcome(optimizer.apply, gradients, variables)
                yield outcome(optimizer.apply_gradients, zip(gradients, variables, strict=True))
            yield described(caught)
            yield variables, optimizer.variables

    compare(program, native=action != "error", replayed=action != "error")


@pytest.mark.parametrize("actions", [("always", "error"), ("default", "ignore"), ("once", "once")])
def test_filters_that_change(actions):
    def program():
        optimizer, gradients, variables = started()
        forget()
        probe(optimizer, "apply")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(CALLS):
                optimizer.apply(gradients, variables)
        yield described(caught)
        for action in actions * 2:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(action)
                for _ in range(3):
                    yield outcome(optimizer.apply, gradients, variables)
                    yield described(caught)
                    yield variables, optimizer.variables

    compare(program)


FILTERS = {
    "of the text": lambda: warnings.filterwarnings("error", "Gradients do not exist"),
    "of another text": lambda: warnings.filterwarnings("error", "Something else"),
    "of the category": lambda: warnings.simplefilter("error", UserWarning),
    "of another category": lambda: warnings.simplefilter("error", DeprecationWarning),
    "of the module": lambda: warnings.filterwarnings("error", module="keras.src.optimizers"),
    "of another module": lambda: warnings.filterwarnings("error", module="keras.src.layers"),
    "of another line": lambda: warnings.simplefilter("error", lineno=1),
    "behind another one": lambda: (warnings.simplefilter("error"), warnings.simplefilter("ignore")),
    "of a plain text": lambda: warnings.filters.insert(0, ("error", "Gradients", Warning, None, 0)),
    "that are malformed": lambda: warnings.filters.insert(0, ("error",)),
    "with an unknown action": lambda: warnings.filters.insert(0, ("x", None, Warning, None, 0)),
}


@pytest.mark.parametrize("title", FILTERS)
def test_filters(title):
    def program():
        optimizer, gradients, variables = started()
        forget()
        probe(optimizer, "apply")
        for number in range(3 * CALLS):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                if number >= CALLS:
                    FILTERS[title]()
                    warnings._filters_mutated()
                yield outcome(optimizer.apply, gradients, variables)
            yield described(caught)
            yield variables, optimizer.variables

    compare(program)


def test_the_text_on_the_error_stream():
    """Also on a stream of a program whose code reads variables and runs ops."""
    printed = python("""
        import contextlib, io, warnings
        import keras, tensorflow as tf, fastops

        class Stream(io.StringIO):
            def write(self, text):
                made.append(tf.square(variables[1]).numpy().tolist())
                return super().write(text)

        def program(kind):
            variables[:] = [keras.Variable([1.0], name="first"), keras.Variable([2.0])]
            optimizer = keras.optimizers.SGD(0.5)
            optimizer.build(variables)
            for _ in range(8):
                made.clear()
                with contextlib.redirect_stderr(kind()) as stream, warnings.catch_warnings():
                    warnings.simplefilter("always")
                    optimizer.apply([None, tf.constant([1.0])], variables)
                yield stream.getvalue(), list(made), variables[1].numpy().tolist()

        variables, made = [], []
        for kind in (io.StringIO, Stream):
            want = list(program(kind))
            assert "Gradients do not exist for variables ['first']" in want[-1][0]
            assert bool(want[-1][1]) == (kind is Stream)
            with fastops.accelerated():
                before = keras.optimizers.SGD.apply.replayed
                assert list(program(kind)) == want
                replayed = keras.optimizers.SGD.apply.replayed - before
                print(replayed > 0)
    """)
    assert printed.split() == ["True", "False"]


def test_programs_that_show_warnings_themselves():
    def program():
        optimizer, gradients, variables = started()
        forget()
        probe(optimizer, "apply")
        values = []

        def show(message, *_):
            values.append((str(message), variables[1].numpy().tolist()))
            if len(values) > CALLS + 4:
                raise KeyError("shown")

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                for _ in range(CALLS):
                    optimizer.apply(gradients, variables)
            with mock.patch.object(warnings, "showwarning", show):
                for _ in range(CALLS):
                    yield outcome(optimizer.apply, gradients, variables)
                    yield variables, values
            with mock.patch.object(warnings, "warn", show):
                yield outcome(optimizer.apply, gradients, variables)
                yield variables, values

    compare(program)


def test_warnings_that_logging_captures():
    def program():
        optimizer, gradients, variables = started()
        forget()
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        logging.getLogger("py.warnings").addHandler(handler)
        logging.captureWarnings(True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                for _ in range(CALLS):
                    optimizer.apply(gradients, variables)
                    yield stream.getvalue()
        finally:
            logging.captureWarnings(False)
            logging.getLogger("py.warnings").removeHandler(handler)

    compare(program)


def test_other_gradients_and_other_names():
    def program():
        optimizer, gradients, variables = started()
        forget()
        probe(optimizer, "apply")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(CALLS):
                optimizer.apply(gradients, variables)
                optimizer.apply([floats(3, 2), None], variables)
                optimizer.apply([floats(3, 2), floats(2)], variables)
            yield outcome(optimizer.apply, [None, None], variables)
            variables[0]._path = "renamed"
            for _ in range(CALLS):
                optimizer.apply(gradients, variables)
            yield described(caught)
            yield variables, optimizer.variables

    compare(program)


def test_a_training_step_of_a_model_with_an_unused_layer():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.used, self.unused = keras.layers.Dense(2), keras.layers.Dense(2)

        def build(self, shape):
            self.used.build(shape)
            self.unused.build(shape)
            self.built = True

        def call(self, x):
            return self.used(x)

    def program():
        model = Model()
        model.build((None, 4))
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
        forget()
        probe(optimizer, "apply")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(CALLS):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(model(floats(2, 4)))
                slopes = tape.gradient(loss, model.trainable_variables)
                optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
            assert len(caught) == CALLS
        yield described(caught)
        yield model.trainable_variables

    compare(program, native=True)


def test_the_reason_of_a_warning_that_raises():
    with fastops.accelerated(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer, gradients, variables = started()
        for _ in range(CALLS):
            optimizer.apply(gradients, variables)
        assert told(optimizer, "apply")["replayed"]
        fastops.reset_stats()
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="Gradients do not exist"):
            optimizer.apply(gradients, variables)
        seen = fastops.stats().methods["BaseOptimizer.apply"]
        assert seen.reasons == {"warning_raises": 1}
