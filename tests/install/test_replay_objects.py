"""Replayed methods of linear operators and tables, whose state may change between calls."""

import gc
import logging
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from calls import frames, outcome
from support import assert_same, floats

import fastops
from fastops._install.replay.functions import METHODS, OBJECTS
from fastops._install.replay.replayed import Replayed

pytestmark = [pytest.mark.usefixtures("fresh")]

L = tf.linalg
CALLS = 5


def spd(seed):
    """Return a matrix that is symmetric and positive definite."""
    m = floats(3, 3, seed=seed)
    return tf.constant(m @ m.T + 3 * np.eye(3, dtype=np.float32))


def full(seed, **hints):
    return L.LinearOperatorFullMatrix(spd(seed), **hints)


def row(seed):
    return tf.constant(floats(3, seed=seed + 7))


def square(seed):
    return tf.constant(floats(3, 3, seed=seed + 7))


HINTS = {"is_non_singular": True, "is_self_adjoint": True, "is_positive_definite": True}
OPERATORS = {
    "Adjoint": lambda s: L.LinearOperatorAdjoint(full(s)),
    "BlockDiag": lambda s: L.LinearOperatorBlockDiag([full(s), full(s + 1)]),
    "BlockLowerTriangular": lambda s: L.LinearOperatorBlockLowerTriangular([[full(s)]]),
    "Circulant": lambda s: L.LinearOperatorCirculant(tf.cast(row(s), tf.complex64)),
    "Composition": lambda s: L.LinearOperatorComposition([full(s), full(s + 1)]),
    "Diag": lambda s: L.LinearOperatorDiag(row(s), **HINTS),
    "FullMatrix": full,
    "FullMatrix, with hints": lambda s: full(s, **HINTS),
    "Householder": lambda s: L.LinearOperatorHouseholder(row(s)),
    "Identity": lambda s: L.LinearOperatorIdentity(3),
    "Inversion": lambda s: L.LinearOperatorInversion(full(s, is_non_singular=True)),
    "Kronecker": lambda s: L.LinearOperatorKronecker([full(s)]),
    "LowRankUpdate": lambda s: L.LinearOperatorLowRankUpdate(full(s, **HINTS), square(s)),
    "LowerTriangular": lambda s: L.LinearOperatorLowerTriangular(spd(s)),
    "Permutation": lambda s: L.LinearOperatorPermutation([2, 0, 1]),
    "ScaledIdentity": lambda s: L.LinearOperatorScaledIdentity(3, row(s)[0]),
    "Toeplitz": lambda s: L.LinearOperatorToeplitz(row(s), row(s + 1)),
    "Tridiag": lambda s: L.LinearOperatorTridiag(square(s)),
    "Zeros": lambda s: L.LinearOperatorZeros(3),
}
ASKED = {
    "__matmul__": lambda op, x, m: op @ m,
    "matmul": lambda op, x, m: op.matmul(m, adjoint=True),
    "matvec": lambda op, x, m: op.matvec(x),
    "solve": lambda op, x, m: op.solve(m),
    "solvevec": lambda op, x, m: op.solvevec(x),
    "to_dense": lambda op, x, m: op.to_dense(),
    "diag_part": lambda op, x, m: op.diag_part(),
    "trace": lambda op, x, m: op.trace(),
    "add_to_tensor": lambda op, x, m: op.add_to_tensor(m),
    "determinant": lambda op, x, m: op.determinant(),
    "log_abs_determinant": lambda op, x, m: op.log_abs_determinant(),
    "eigvals": lambda op, x, m: op.eigvals(),
    "cond": lambda op, x, m: op.cond(),
    "shape_tensor": lambda op, x, m: op.shape_tensor(),
    "batch_shape_tensor": lambda op, x, m: op.batch_shape_tensor(),
    "domain_dimension_tensor": lambda op, x, m: op.domain_dimension_tensor(),
    "range_dimension_tensor": lambda op, x, m: op.range_dimension_tensor(),
    "tensor_rank_tensor": lambda op, x, m: op.tensor_rank_tensor(),
    "assert_non_singular": lambda op, x, m: op.assert_non_singular(),
    "assert_positive_definite": lambda op, x, m: op.assert_positive_definite(),
    "assert_self_adjoint": lambda op, x, m: op.assert_self_adjoint(),
}


class Records(logging.Handler):
    """A handler that stores what TensorFlow logs."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture
def records():
    handler = Records()
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    yield handler.messages
    logger.removeHandler(handler)
    logger.setLevel(level)


def attempt(function, *args, **kwargs):
    """Return the result of a call, or its exception."""
    return outcome(function, args, kwargs)


def test_each_listed_method_is_replaced():
    missing = set(OBJECTS) - {f"tf.linalg.LinearOperator{name.split(',')[0]}" for name in OPERATORS}
    assert all("lookup" in name or name[-2:] in ("2D", "3D") for name in missing)
    assert set(ASKED) == set(METHODS["tf.linalg.LinearOperator"].split())
    with fastops.accelerated():
        for names in METHODS.values():
            assert names.split()
        assert isinstance(L.LinearOperator.matmul, Replayed)
        assert isinstance(L.LinearOperatorBlockDiag.matmul, Replayed)
        assert isinstance(tf.lookup.StaticHashTable.lookup, Replayed)


@pytest.mark.parametrize("name", OPERATORS)
def test_linear_operators(name, records):
    def run(seed, method):
        op = OPERATORS[name](seed)
        x, m = row(seed), square(seed)
        if name == "Circulant":
            x, m = tf.cast(x, tf.complex64), tf.cast(m, tf.complex64)
        if name == "BlockDiag":
            x, m = tf.concat([x, x], 0), tf.concat([m, m], 0)
        records.clear()
        result = attempt(ASKED[method], op, x, m)
        return result, list(records)

    want = {method: [run(seed, method) for seed in range(CALLS)] for method in ASKED}
    with fastops.accelerated():
        for method, results in want.items():
            for seed, (result, said) in enumerate(results):
                got, saying = run(seed, method)
                assert_same(got, result)
                assert saying == said, method


@pytest.mark.parametrize("method", ["matmul", "matvec", "solvevec", "to_dense", "trace"])
def test_linear_operators_are_replayed(method):
    with fastops.accelerated():
        for seed in range(CALLS):
            op, x, m = full(seed, is_non_singular=True), row(seed), square(seed)
            ASKED[method](op, x, m)
        call = ASKED[method]
        assert frames(call, (op, x, m), {}) in ([], [call.__name__])
        nested = L.LinearOperatorInversion(full(1, is_non_singular=True))
        for _ in range(3):
            ASKED[method](nested, x, m)
        assert frames(call, (nested, x, m), {}) in ([], [call.__name__])


def test_a_composition_of_one_operator_with_itself_or_another():
    def run():
        results = []
        for seed in range(CALLS):
            a, b = full(seed), full(seed + 1)
            for pair in ([a, a], [a, b], [b, a]):
                results.append(L.LinearOperatorComposition(pair).matvec(row(seed)))
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


CHANGES = {
    "a tensor": lambda op: setattr(op, "_matrix", spd(9)),
    "another shape": lambda op: setattr(op, "_matrix", tf.eye(3, batch_shape=[2])),
    "a hint": lambda op: setattr(op, "_is_self_adjoint", False),
    "a hint, positively": lambda op: setattr(op, "_is_positive_definite", True),
    "a method": lambda op: setattr(op, "_matmul", lambda x, **_: x),
    "a method that solves": lambda op: setattr(op, "_solve", lambda x, **_: x + 1.0),
    "an array": lambda op: setattr(op, "_matrix", np.eye(3, dtype=np.float32)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_operators_that_change(change):
    def run():
        op, results = full(2, is_self_adjoint=True), []
        for _ in range(CALLS):
            results.append(
                [attempt(ASKED[method], op, row(3), square(3)) for method in METHODS_TRIED]
            )
        CHANGES[change](op)
        for _ in range(CALLS):
            results.append(
                [attempt(ASKED[method], op, row(3), square(3)) for method in METHODS_TRIED]
            )
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


METHODS_TRIED = ("matmul", "matvec", "solve", "to_dense")


def test_operators_of_variables():
    v = tf.Variable(spd(1))

    def run():
        op, results = L.LinearOperatorFullMatrix(v), []
        for i in range(CALLS):
            v.assign(spd(i))
            results.append((op.matvec(row(1)), op.to_dense() + 0.0))
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


def test_operators_of_users():
    class Doubled(L.LinearOperatorFullMatrix):
        factor = 2.0

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return super()._matmul(x, adjoint, adjoint_arg) * self.factor

    def run():
        op, results = Doubled(spd(1)), []
        for i in range(CALLS):
            Doubled.factor = float(i)
            results.append(op.matmul(square(1)))
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


@pytest.mark.parametrize("name", ["FullMatrix, with hints", "Diag", "Toeplitz", "LowRankUpdate"])
def test_gradients(name):
    def run():
        results = []
        for seed in range(CALLS):
            x = row(seed)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                op = OPERATORS[name](seed)
                held = tf.nest.flatten(list(op.parameters.values()))
                held = [value for value in held if tf.is_tensor(value)]
                tape.watch(held)
                values = [op.matvec(x), op.solvevec(x), op.trace()]
            results.append([tape.gradient(value, [x, *held]) for value in values])
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


# ---------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------

WORDS = tf.constant(["a", "b", "c"])
NUMBERS = tf.constant([1, 2, 3], tf.int64)
VALUES = tf.constant([1.0, 2.0, 3.0])


def static(values=VALUES):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(WORDS, values), -1.0)


def vocabulary(buckets=3, keys=WORDS, **options):
    initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.range(3, dtype=tf.int64))
    return tf.lookup.StaticVocabularyTable(initializer, buckets, **options)


def mutable(**options):
    return tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0, **options)


def dense(**options):
    return tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, -1, -2, -3, initial_num_buckets=16, **options
    )


def contents(table):
    keys, values = table.export()
    return sorted(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True))


def use_static():
    results = []
    for i in range(CALLS):
        table = static(VALUES + float(i))
        results.append((table.lookup(WORDS), table[WORDS[:2]], table.size(), contents(table)))
    return results


def use_vocabulary():
    found, keys = [], tf.constant(["a", "z", "b", "y"])
    table, whole = vocabulary(), vocabulary(keys=NUMBERS, lookup_key_dtype=tf.int32)
    without = tf.lookup.StaticVocabularyTable(None, 5)
    for i in range(CALLS):
        found.append((table.lookup(keys), table[keys[i % 2 :]], table.size()))
        found.append((whole.lookup(tf.constant([i, 9])), without.lookup(keys), without.size()))
        found.append(vocabulary(i + 1).lookup(keys))
    return found


def use_vocabularies_that_change():
    found, table, keys = [], vocabulary(), tf.constant(["a", "z", "b", "y"])
    for i in range(2 * CALLS):
        table._num_oov_buckets = 1 + i // 4
        found.append((table.lookup(keys), table.size()))
    table._table = None
    return [*found, table.lookup(keys), table.size()]


def use_mutable(**options):
    results, table, other = [], mutable(**options), mutable(**options)
    for i in range(CALLS):
        table.insert(WORDS, VALUES + float(i))
        results.append((table.lookup(WORDS), other.lookup(WORDS), table.size(), contents(table)))
        other.insert(WORDS[i % 3 :], VALUES[i % 3 :])
        results.append((table[WORDS], other[WORDS], other.size(), contents(other)))
        other.remove(WORDS[:2])
        results.append((table.lookup(WORDS), other.lookup(WORDS), other.size()))
    return results


def use_dense(**options):
    results, table = [], dense(**options)
    for i in range(CALLS):
        table.insert(NUMBERS + i, NUMBERS * i)
        results.append((table.lookup(NUMBERS), table[NUMBERS], table.size(), contents(table)))
        table.insert_or_assign(NUMBERS, NUMBERS + 40)
        results.append((table.lookup(NUMBERS), contents(table)))
        table.erase(NUMBERS[:1])
        table.remove(NUMBERS[1:2])
        results.append((table.lookup(NUMBERS), table.size(), contents(table)))
    return results


def use_sparse_keys():
    tables, found = (static(), vocabulary()), []
    for i in range(CALLS):
        keys = tf.SparseTensor([[0, i % 2], [1, 1]], WORDS[:2], [2, 2])
        found += [table.lookup(keys).values for table in tables]
        keys = tf.ragged.constant([["a"], ["b", "z"]])
        found += [table.lookup(keys).flat_values for table in tables]
    return found


def use_wrongly():
    results, tables = [], (static(), mutable(), dense())
    for table in (*tables, vocabulary()):
        for _ in range(CALLS):
            results.append(attempt(table.lookup, tf.constant([1.5])))
            results.append(attempt(table.lookup, None))
            results.append(attempt(table.lookup, WORDS, name="given"))
    for table in tables[1:]:
        for _ in range(CALLS):
            results.append(attempt(table.insert, WORDS, tf.constant([1.0])))
            results.append(attempt(table.insert, NUMBERS, NUMBERS[:1]))
            results.append(attempt(table.insert, NUMBERS[:2], NUMBERS, name="given"))
            results.append(table.size())
    for _ in range(CALLS):  # the reserved keys for empty and deleted entries
        results.append(attempt(tables[2].insert, tf.constant([-2], tf.int64), NUMBERS[:1]))
        results.append(attempt(tables[2].lookup, tf.constant([-3], tf.int64)))
    return results


USES = {
    "static": use_static,
    "vocabulary": use_vocabulary,
    "vocabularies that change": use_vocabularies_that_change,
    "mutable": use_mutable,
    "mutable, anonymous": lambda: use_mutable(experimental_is_anonymous=True),
    "dense": use_dense,
    "dense, anonymous": lambda: use_dense(experimental_is_anonymous=True),
    "sparse and ragged keys": use_sparse_keys,
    "wrongly": use_wrongly,
}


@pytest.mark.parametrize("use", USES)
def test_tables(use):
    want = USES[use]()
    with fastops.accelerated():
        assert_same(USES[use](), want)


def test_tables_are_replayed():
    with fastops.accelerated():
        a, b, c, d = static(), mutable(), dense(), vocabulary()
        calls = [
            *(lambda: a.lookup(WORDS), lambda: a.size(), lambda: a.export(), lambda: a[WORDS]),
            *(lambda: b.lookup(WORDS), lambda: b.insert(WORDS, VALUES), lambda: b.size()),
            *(lambda: b.export(), lambda: b.remove(WORDS[:1]), lambda: b[WORDS]),
            *(lambda: c.lookup(NUMBERS), lambda: c.insert(NUMBERS, NUMBERS), lambda: c.size()),
            *(lambda: c.export(), lambda: c.remove(NUMBERS), lambda: c.erase(NUMBERS)),
            *(lambda: d.lookup(WORDS), lambda: d.size(), lambda: d[WORDS]),
        ]
        for call in calls:
            for _ in range(3):
                call()
            assert frames(call, (), {}) in ([], ["<lambda>"])


def test_an_insertion_happens_once():
    """An insertion happens once, also if its call is recorded, and if another kernel fails."""
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    seen = []
    with fastops.accelerated():
        for i in range(10):
            table.insert(WORDS[i % 3 : i % 3 + 1], tf.constant([i], tf.int64))
            attempt(table.insert, WORDS, NUMBERS[:2])
            seen.append(int(table.size()))
    assert seen == [1, 2] + [3] * 8
    assert dict(contents(table)) == {b"a": 9, b"b": 7, b"c": 8}


def test_effects_are_not_repeated_after_an_error():
    """If an op fails after a table was changed, the call must not be made again."""
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    def count(table, x):
        table.insert(WORDS[:1], table.lookup(WORDS[:1]) + 1)
        return tf.raw_ops.CheckNumerics(tensor=x, message="checked")

    with fastops.accelerated():
        counting = Replayed(count, tf.norm.passed)
        for _ in range(CALLS):
            counting(table, VALUES)
        assert counting.describe()["replayed"] == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="checked"):
            counting(table, VALUES / 0.0)
    assert contents(table) == [(b"a", CALLS + 1)]


def test_tables_in_functions():
    def run():
        table = mutable()

        @tf.function
        def step(keys, values):
            table.insert(keys, values)
            return table.lookup(keys), table.size()

        return [step(WORDS, VALUES * i) for i in range(CALLS)], contents(table)

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


def test_eight_threads():
    operators = [full(number) for number in range(8)]
    products = [op.matvec(VALUES).numpy() for op in operators]
    with fastops.accelerated():
        tables = [mutable() for _ in range(8)]
        wrong = []

        def work(number):
            for i in range(200):
                tables[number].insert(WORDS, VALUES * number + i)
                got = tables[number].lookup(WORDS).numpy()
                if not (got == VALUES.numpy() * number + i).all():
                    wrong.append((number, i, got))
                if not (operators[number].matvec(VALUES).numpy() == products[number]).all():
                    wrong.append((number, i, "matvec"))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_replays_keep_no_objects_alive():
    with fastops.accelerated():
        op, table = full(1), mutable()
        for _ in range(CALLS):
            op.matvec(VALUES)
            table.insert(WORDS, VALUES)
        seen = [weakref.ref(op), weakref.ref(table), weakref.ref(op._matrix)]
        del op, table
        gc.collect()
        assert [reference() for reference in seen] == [None] * 3


# ---------------------------------------------------------------------------------------------
# Sparse and ragged tensors, and logging
# ---------------------------------------------------------------------------------------------


def test_operators_of_sparse_tensors():
    def run():
        results = []
        for i in range(CALLS):
            sparse = tf.sparse.from_dense(tf.constant([[float(i), 0.0], [1.0, 2.0]]))
            dense = tf.constant([[1.0, 2.0], [3.0, 4.0 + i]])
            for result in (sparse * dense, sparse / dense, sparse * dense[0], sparse * 2.0):
                results.append((result.indices, result.values, result.dense_shape))
            results.append(attempt(lambda a, b: a * b, sparse, dense[:, :1, None]))
        return results

    want = run()
    with fastops.accelerated():
        assert_same(run(), want)


def test_ragged_tensors_share_row_partitions():
    """Functions check whether tensors share a row partition, which is faster than a comparison."""

    def run():
        ragged, seen = tf.ragged.constant([[1.0, 2.0], [], [3.0]]), []
        for _ in range(CALLS):
            low, high = ragged < 2.0, -ragged
            seen.append((low._row_partition is ragged._row_partition, high is ragged))
            seen.append((low.row_splits is high.row_splits, (low | low).to_list()))
            other = tf.RaggedTensor.from_row_splits(ragged.values, ragged.row_splits)
            shared = other.with_values(ragged.values)
            for one, two in ((ragged, other), (ragged, ragged), (other, shared), (other, other)):
                both = one + two
                seen.append((both.to_list(), both._row_partition is one._row_partition))
        return seen

    want = run()
    with fastops.accelerated():
        assert run() == want
        assert tf.RaggedTensor.__lt__.describe()["replayed"]


def test_log_messages_are_logged_in_each_call(records):
    z = tf.constant([1.0 + 2.0j, 3.0])

    def run():
        records.clear()
        for _ in range(CALLS):
            tf.saturate_cast(z, tf.float32)
            full(1).determinant()
        return sorted(records)

    want = run()
    assert len(want) >= CALLS
    with fastops.accelerated():
        assert run() == want
