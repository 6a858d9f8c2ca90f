"""Iterators, resources, models and arrays are freed as early as in TensorFlow, uncollected."""

import json

import pytest
from support import python

PROGRAM = """
import collections, gc, json, os, time, weakref

def threads():
    return len(os.listdir("/proc/self/task"))

generators = set()  # generators that are running

def rows():
    def generate():
        me = object()
        generators.add(me)
        try:
            while True:
                yield np.ones([8, 3], "f4"), np.ones([8, 1], "f4")
        finally:
            generators.discard(me)
    specs = tf.TensorSpec([8, 3]), tf.TensorSpec([8, 1])
    return tf.data.Dataset.from_generator(generate, output_signature=specs).take(4).prefetch(1)

def arrays():
    return np.ones([32, 3], "f4"), np.ones([32, 1], "f4")

def census():
    counts = collections.Counter(
        generators=len(generators), files=len(os.listdir("/proc/self/fd")), threads=threads()
    )
    for one in gc.get_objects():
        kind = type(one)
        if kind.__name__ == "EagerTensor":
            counts[one.dtype.name if one.dtype in (tf.resource, tf.variant) else "tensor"] += 1
        elif kind.__name__ == "OwnedIterator" or kind.__mro__[1].__name__ == "OwnedIterator":
            counts["iterator"] += 1
        elif kind.__name__.endswith("Variable") and isinstance(one, tf.Variable):
            counts["variable"] += 1
    return counts

def left_by(kind, allowed=None):
    # Find what two calls of a kind leave behind, without a collection. A call before fills caches.
    # The system lists an ended thread for some time, so wait until no more threads are left than
    # are allowed. Threads that TensorFlow leaves without fastops are allowed.
    kind()
    gc.collect()
    before = census()
    gc.disable()
    given = [weakref.ref(one) for _ in range(2) for one in kind()]
    after = census()
    for _ in range(200 if allowed is None else 6000):
        if threads() <= before["threads"] + (allowed or 0):
            break
        time.sleep(0.01)
    after["threads"] = max(threads(), before["threads"])
    gc.enable()
    after.subtract(before)
    return dict(after, given=sum(one() is not None for one in given))

def compare(*kinds):
    stock = {kind.__name__: left_by(kind) for kind in kinds}
    fastops.install()
    installed = {
        kind.__name__: left_by(kind, stock[kind.__name__]["threads"]) for kind in kinds
    }
    planned = sum(one.plan for one in fastops.stats().functions.values())
    print(json.dumps([stock, installed, planned]))
"""

MODELS = """
def model():
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made

class Batches(BASE):
    def __len__(self):
        return 4

    def __getitem__(self, place):
        return tuple(one[:8] for one in arrays())

def generate():
    while True:
        yield tuple(one[:8] for one in arrays())

shared = model()

def with_all(data):
    def call():
        x, y = data()
        steps = 4 if y is None else None
        valid = data() if y is not None else data()[0]
        shared.fit(x, y, steps_per_epoch=steps, epochs=2, verbose=0)
        shared.fit(x if y is not None else data()[0], y, steps_per_epoch=steps, verbose=0,
                   validation_data=valid, validation_steps=steps)
        x = x if y is not None else data()[0]
        shared.evaluate(x, y, steps=steps, verbose=0)
        shared.predict(x if y is not None else data()[0], steps=steps, verbose=0)
        return [x]
    return call

def of_arrays():
    return with_all(arrays)()

def of_tensors():
    return with_all(lambda: tuple(map(tf.constant, arrays())))()

def of_a_dataset():
    return with_all(lambda: (rows(), None))()

def of_a_generator():
    return with_all(lambda: (generate(), None))()

def of_batches():
    return with_all(lambda: (Batches(), None))()

def on_batch():
    x, y = arrays()
    for _ in range(3):
        shared.train_on_batch(x, y)
        shared.test_on_batch(x, y)
        shared.predict_on_batch(x)
    return [x, y]

def new_model():
    made = model()
    made.fit(rows(), epochs=2, verbose=0)
    return [made]

compare(of_arrays, of_tensors, of_a_dataset, of_a_generator, of_batches, on_batch, new_model)
"""

FUNCTIONS = """
import shutil, tempfile

@tf.function
def next_of(iterator, variable):
    return next(iterator)[0] * variable

@tf.function
def total(dataset):
    return dataset.reduce(0.0, lambda found, row: found + tf.reduce_sum(row[0]))

@tf.function
def nested(given):
    return given["a"] + given["b"][0]

@tf.function
def failing(x, iterator):
    tf.debugging.assert_less(tf.reduce_sum(x), 0.0)
    return next(iterator)[0]

@tf.function
def called(made, x):
    return made(x)

class Module(tf.Module):
    def __init__(self):
        self.variable = tf.Variable(2.0)

    def __call__(self, x):
        return self.variable * x

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def served(self, x):
        return self.variable * x

folder = tempfile.mkdtemp()
tf.saved_model.save(Module(), folder)
own = fastops.function(lambda iterator, variable: next(iterator)[0] * variable)

def an_iterator(function=next_of):
    data, variable = rows(), tf.Variable(2.0)
    iterator = iter(data)
    for _ in range(3):
        function(iterator, variable)
    return [data, iterator, variable]

def own_function():
    return an_iterator(own)

def a_dataset():
    data = rows()
    total(data)
    total(data)
    return [data]

def tensors():
    x, (array, _) = tf.ones([32, 3]), arrays()
    for _ in range(3):
        made = nested({"a": x, "b": [array]})
    return [x, array, made]

def an_error():
    x, data = tf.ones([2]), rows()
    iterator = iter(data)
    for _ in range(3):
        try:
            failing(x, iterator)
        except tf.errors.OpError:
            pass
    return [x, data, iterator]

def a_module():
    made, x = Module(), tf.ones([2])
    for _ in range(3):
        called(made, x)
    return [made, made.variable, x]

def a_local_function():
    variable = tf.Variable(2.0)
    local = tf.function(lambda x: x * variable, autograph=False)
    for _ in range(4):
        local(tf.ones([2]))
    return [variable, local]

def a_loop():
    data = rows()
    for x, _ in data:
        x + 1.0
    for x, _ in data:
        break
    return [data]

def a_tape():
    variable, x = tf.Variable(tf.ones([3, 2])), tf.ones([4, 3])
    for _ in range(4):
        with tf.GradientTape() as tape:
            made = tf.reduce_sum(tf.tanh(x @ variable))
        gradient = tape.gradient(made, variable)
    return [variable, x, made, gradient]

def a_saved_model():
    loaded, x = tf.saved_model.load(folder), tf.ones([2, 3])
    for _ in range(4):
        loaded.served(x)
    return [loaded, x]

def a_session(kind=tf.compat.v1.Session):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
        variable = tf.compat.v1.get_variable("v", initializer=1.0, use_resource=True)
        added = variable.assign_add(2.0)
        start = tf.compat.v1.global_variables_initializer()
        twice = x * 2.0
    with kind(graph=graph) as session:
        session.run(start)
        for _ in range(4):
            session.run(twice, {x: [1.0]})
            session.run(added)
    return [graph, session]

def own_session():
    return a_session(fastops.graph.Session if fastops.is_installed() else tf.compat.v1.Session)

compare(
    an_iterator, own_function, a_dataset, tensors, an_error, a_module, a_local_function, a_loop,
    a_tape, a_saved_model, a_session, own_session,
)
shutil.rmtree(folder)
"""


def check(code, **environment):
    out = python(PROGRAM + code, timeout=300, **environment)
    stock, installed, planned = json.loads(out.splitlines()[-1])
    assert planned
    for kind, left in stock.items():
        more = {name: n for name, n in installed[kind].items() if n > left.get(name, 0)}
        if kind == "new_model":
            # A Keras model is part of a reference cycle. Its recordings and their tensors are freed
            # with it.
            more.pop("tensor", None)
        assert not more, f"{kind}: {more} more than {left}"


def test_functions_and_graphs():
    check(FUNCTIONS)


@pytest.mark.parametrize(("name", "base"), [
    ("keras", "keras.utils.PyDataset"),
    pytest.param("tf_keras", "keras.utils.Sequence", marks=pytest.mark.slow),
])  # fmt: skip
def test_keras(name, base):
    pytest.importorskip(name)
    check(f"import {name} as keras" + MODELS.replace("BASE", base))
