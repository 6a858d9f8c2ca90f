"""The helpers below TensorFlow's public functions: structures, modules, predicates, conversions."""

import collections
import dataclasses
import functools
import inspect
import itertools
import re
import sys
import types
import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
import wrapt
from calls import frames, in_both, outcome
from support import Failure
from tensorflow.python.framework import ops, tensor_conversion_registry, tensor_shape, tensor_util
from tensorflow.python.module import module as tf_module
from tensorflow.python.trackable.autotrackable import AutoTrackable
from tensorflow.python.util import nest, nest_util, tf_decorator, tf_inspect, traceback_utils

import fastops
from fastops._install import answer
from fastops._install.helpers import functions, targets

pytestmark = pytest.mark.usefixtures("fresh")

LAYERS = ["helpers"]


@pytest.fixture(autouse=True)
def not_installed():
    assert not fastops.is_installed()
    yield
    fastops.uninstall()


def shown(value):
    """Describe a value without its identity, which differs from run to run."""
    if isinstance(value, Failure):
        return value.kind, re.sub(r"0x[0-9a-f]+", "0x", value.message)
    if type(value) in (list, tuple):
        return type(value), [shown(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(key, shown(item)) for key, item in value.items()]
    if isinstance(value, tuple):
        return type(value).__name__, [shown(item) for item in value]
    return type(value).__name__, re.sub(r"0x[0-9a-f]+", "0x", repr(value))


# ---------------------------------------------------------------------------------------------
# Replaced functions
# ---------------------------------------------------------------------------------------------


OF_TF_KERAS = {".".join(helper.name.split(".")[-2:]) for helper in functions.TF_KERAS}


def test_every_helper_is_patched_in():
    helpers = [*functions.HELPERS, *functions.METHODS, functions.WRAPPER, *functions.STANDARD]
    found = [*targets.functions().values(), *((t.layer, t.name, t.make) for t in targets.methods())]
    names = [name for _, name, _ in found if name not in OF_TF_KERAS]
    assert set(names) == answer.registered("helpers") - OF_TF_KERAS
    assert len(names) == len(helpers)


def test_uninstall_restores_the_originals():
    places = [
        (nest, "flatten"),
        (tensor_util, "is_tf_type"),
        (tf, "is_tensor"),
        (tf.nest, "flatten"),
    ]
    places += [(tensor_shape.TensorShape, "__init__"), (tf_module, "_flatten_module")]
    before = [vars(holder)[name] for holder, name in places]
    with fastops.accelerated(only=LAYERS):
        for (holder, name), original in zip(places, before, strict=True):
            value = vars(holder)[name]
            assert isinstance(value, answer.Answer)
            assert value.original is original
            assert value.__doc__ == original.__doc__
    assert all(
        vars(holder)[name] is original
        for (holder, name), original in zip(places, before, strict=True)
    )


def test_a_helper_without_a_stand_in():
    with pytest.raises(ValueError, match="no stand-in is registered for nest"):
        answer.Answer(len, "nest.nonsense")


# ---------------------------------------------------------------------------------------------
# Structures, as functions: each run, with and without `install`, makes new ones
# ---------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y")


class Typed(typing.NamedTuple):
    b: object
    a: object = 5


class Slotted(Point):
    __slots__ = ()

    @property
    def norm(self):
        return self.x


class Loose(Point):
    """A class whose instances have a dict."""


class Turned(Point):
    __slots__ = ()
    x = property(lambda self: self[1])
    y = property(lambda self: self[0])


class Backwards(Point):
    __slots__ = ()

    def __iter__(self):
        return iter(tuple.__iter__(self[::-1]))


class Picky(Point):
    __slots__ = ()

    def __new__(cls, x, y):
        if x == "bad":
            raise ValueError("picky")
        return super().__new__(cls, x, y)


@dataclasses.dataclass
class Plain:
    value: object


@dataclasses.dataclass
class Masked:
    mask: object
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


class Attribute(typing.NamedTuple):
    name: str


class Attrs:
    """A class of the package attrs."""

    __attrs_attrs__ = (Attribute("second"), Attribute("first"))

    def __init__(self, second, first):
        self.second, self.first = second, first

    def __repr__(self):
        return f"Attrs({self.second!r}, {self.first!r})"


class Frozen(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)

    def __repr__(self):
        return f"Frozen({self.items_!r})"


class List(list):
    pass


class Tuple(tuple):
    __slots__ = ()


class Dict(dict):
    pass


class Name(str):
    __slots__ = ()


def own_protocol():
    plain = Plain(1)
    plain.__tf_flatten__ = lambda: ((), (plain.value,))
    plain.__tf_unflatten__ = lambda metadata, components: Plain(*components)
    return plain


def tracked(value):
    holder = AutoTrackable()
    holder.value = value
    return holder.value


def turned():
    ordered = collections.OrderedDict(b=1, a=2, c=3)
    ordered.move_to_end("b")
    return ordered


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def circular():
    value = []
    value.append(value)
    return value


def unsortable():
    return {"a": 1, 1: 2}


def unsortable_inside():
    return {"a": {"b": 1, 2: 2}}


UNSORTABLE = {unsortable, unsortable_inside}
T = tf.constant([1.0, 2.0])
PLAIN = (
    *(lambda: 1, lambda: "text", lambda: None, lambda: T, lambda: np.ones(2), lambda: {1, 2}),
    *(list, tuple, dict, lambda: [1, 2], lambda: (1, 2), lambda: [1, 2, 3]),
    *(lambda: {"b": 1, "a": 2}, lambda: {2: 1, 1: 2}, lambda: [[1, (2,)], {"a": [3]}]),
    *(
        lambda: Point(1, 2),
        lambda: Typed(1),
        lambda: Slotted([1], 2),
        lambda: [Point(1, (T, None))],
    ),
    *(turned, lambda: collections.defaultdict(list, b=1, a=[2, 3]), lambda: [[], ()]),
    *(lambda: Plain(1), lambda: tf.Variable(1.0), lambda: tf.TensorSpec([2]), lambda: b"text"),
    *(lambda: object, lambda: Name("name"), lambda: tf.float32, lambda: np.float32(1)),
    *(lambda: tf.TensorShape([2, 3]), lambda: {"a": {"d": 1, "c": (2, 3)}}),
)


OTHERS = (
    *(unsortable, lambda: {True: 1, 2: 2}, lambda: {(2, 1): 1, (1, 2): 2}),
    *(
        lambda: {None: 1},
        lambda: {Name("b"): 1},
        lambda: {1.5: 1, 2: 2},
        unsortable_inside,
    ),
    *(lambda: Loose(1, 2), lambda: Turned(1, 2), lambda: Backwards(1, 2), lambda: Picky(1, 2)),
    *(lambda: Masked(True, [1]), own_protocol, lambda: [Masked(1, T)], lambda: Attrs(1, [2])),
    *(lambda: Frozen({"b": 1, "a": 2}), lambda: types.MappingProxyType({"b": 1, "a": 2})),
    *(lambda: {"b": 1, "a": 2}.keys(), lambda: {"b": 1}.values(), lambda: {"b": 1}.items()),
    *(lambda: range(2), lambda: collections.deque([1, 2]), lambda: collections.UserList([1, 2])),
    *(lambda: List([1, 2]), lambda: Tuple((1, 2)), lambda: Dict(b=1, a=2), lambda: [List([1])]),
    *(
        lambda: tracked([1, [2]]),
        lambda: tracked({"b": 1}),
        lambda: tracked((1, 2)),
        lambda: [tracked([1])],
    ),
    *(lambda: wrapt.ObjectProxy([1, 2]), lambda: wrapt.ObjectProxy(Point(1, 2)), lambda: deep(30)),
    *(
        lambda: deep(100),
        circular,
        lambda: tf.sparse.eye(2),
        lambda: [tf.ragged.constant([[1], []])],
    ),
    *(lambda: tf.IndexedSlices(T, tf.constant([0, 1])), lambda: tf.SparseTensorSpec([2, 2])),
    *(
        lambda: [tf.RaggedTensorSpec([2, None])],
        lambda: {"a": Loose(1, 2)},
        lambda: bytearray(b"ab"),
    ),
    *(lambda: array_like(), lambda: slice(1), lambda: memoryview(b"ab")),
)
EVERY = PLAIN + OTHERS


@pytest.fixture(scope="module", autouse=True)
def types_are_known():
    """Show TensorFlow each type once, since its results may depend on that."""
    for make, expand in itertools.product(EVERY, (False, True)):
        outcome(nest.flatten, (make(),), {"expand_composites": expand})


def array_like():
    return np.array([[1], [2]], dtype=object)


def pair(one, other):
    return one, other


def joined(*values):
    return " ".join(str(shown(value)) for value in values)


ONE = {  # functions of one structure
    "is_nested": lambda s: nest.is_nested(s),
    "flatten": lambda s: nest.flatten(s),
    "flatten expanded": lambda s: nest.flatten(s, expand_composites=True),
    "flatten, odd flag": lambda s: nest.flatten(s, 1),
    "paths": lambda s: nest.flatten_with_tuple_paths(s),
    "paths expanded": lambda s: nest.flatten_with_tuple_paths(s, True),
    "joined paths": lambda s: nest.flatten_with_joined_string_paths(s),
    "joined by dots": lambda s: nest.flatten_with_joined_string_paths(s, separator="."),
    "map": lambda s: nest.map_structure(joined, s),
    "map expanded": lambda s: nest.map_structure(joined, s, expand_composites=True),
    "map to structures": lambda s: nest.map_structure(lambda x: [x], s),
    "map, odd keyword": lambda s: nest.map_structure(joined, s, odd=True),
    "map what fails": lambda s: nest.map_structure(lambda x: x.missing, s),
    "map nothing": lambda s: nest.map_structure(None, s),
    "map with paths": lambda s: nest.map_structure_with_tuple_paths(joined, s),
    "map with joined paths": lambda s: nest.map_structure_with_paths(joined, s),
    "like": lambda s: nest_util.sequence_like(s, ["one", "two"]),
    "like, of a tuple": lambda s: nest_util.sequence_like(s, ("one", "two")),
    "like, of one": lambda s: nest_util.sequence_like(s, ["one"]),
    "pack": lambda s: nest.pack_sequence_as(s, [*range(len(nest.flatten(s)))]),
    "pack a tuple": lambda s: nest.pack_sequence_as(s, tuple(range(len(nest.flatten(s))))),
    "pack too many": lambda s: nest.pack_sequence_as(s, [1, 2, 3, 4, 5, 6, 7]),
    "pack too few": lambda s: nest.pack_sequence_as(s, []),
    "pack a number": lambda s: nest.pack_sequence_as(s, 5),
    "pack expanded": lambda s: nest.pack_sequence_as(
        s, nest.flatten(s, expand_composites=True), expand_composites=True
    ),
}
TWO = {  # functions of two structures
    "same": lambda s, t: nest.assert_same_structure(s, t),
    "same, of any types": lambda s, t: nest.assert_same_structure(s, t, check_types=False),
    "same expanded": lambda s, t: nest.assert_same_structure(s, t, expand_composites=True),
    "map both": lambda s, t: nest.map_structure(joined, s, t),
    "map both, of any types": lambda s, t: nest.map_structure(joined, s, t, check_types=False),
    "shallow": lambda s, t: nest.assert_shallow_structure(s, t),
    "up to": lambda s, t: nest.flatten_up_to(s, t),
    "up to, of any types": lambda s, t: nest.flatten_up_to(s, t, check_types=False),
    "map up to": lambda s, t: nest.map_structure_up_to(s, joined, t),
    "map up to, both": lambda s, t: nest.map_structure_up_to(s, joined, t, s),
    "map up to with paths": lambda s, t: nest.map_structure_with_tuple_paths_up_to(s, joined, t),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_structure(name):
    def run():
        return [shown(outcome(ONE[name], (make(),), {})) for make in EVERY]

    want, got = in_both(run, only=LAYERS)
    for make, one, other in zip(EVERY, want, got, strict=True):
        assert one == other, make()


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_structures(name):
    makes = [make for make in EVERY if make is not circular]
    pairs = [
        (one, other)
        for one, other in itertools.product(makes, makes)
        # After a failed sort, TensorFlow still inspects the other structure, with the error
        # pending. The result depends on whether the type is in TensorFlow's cache, which is
        # limited.
        if not {one, other} & UNSORTABLE or {one, other} <= UNSORTABLE | {list, tuple, dict}
    ]

    def run():
        return [shown(outcome(TWO[name], (one(), other()), {})) for one, other in pairs]

    want, got = in_both(run, only=LAYERS)
    for (one, other), first, second in zip(pairs, want, got, strict=True):
        assert first == second, (one(), other())


def test_functions_without_arguments_and_with_wrong_ones():
    names = ("is_nested", "flatten", "assert_same_structure", "pack_sequence_as", "map_structure")
    names += ("map_structure_up_to", "flatten_up_to", "flatten_with_tuple_paths")
    names += ("map_structure_with_tuple_paths", "map_structure_with_tuple_paths_up_to")
    calls = [((), {}), (([1],), {"nonsense": 1}), (([1],) * 9, {}), (([1],), {"structure": [1]})]
    calls += [((str,), {}), ((None, [1]), {}), (([1], None, [1]), {}), (([1], [2], [3], "x"), {})]

    def run():
        return [
            shown(outcome(getattr(nest, name), *asked))
            for name, asked in itertools.product(names, calls)
        ]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_plain_structures_enter_no_python():
    leaves = ("flatten", "paths", "joined paths", "map", "map with paths", "pack", "is_nested")
    with fastops.accelerated(only=LAYERS):
        for make in PLAIN:
            value = make()
            if isinstance(value, (tf.Variable, tf.TensorShape)):
                continue
            for name in leaves:
                entered = frames(lambda name=name, value=value: ONE[name](value), (), {})
                entered = [each for each in entered if each not in ("__repr__", "value_text")]
                assert name.startswith("map") or not entered, (name, value, entered)
            for name in ("same", "up to", "shallow"):
                entered = frames(lambda name=name, value=value: TWO[name](value, value), (), {})
                assert not entered, (name, value, entered)
            assert not frames(nest.map_structure, (pair, value, value), {})
            assert not frames(nest.map_structure_up_to, (value, pair, value, value), {})


def test_a_result_is_a_new_structure():
    with fastops.accelerated(only=LAYERS):
        for value in ([1], {"a": 1}, (1,)):
            packed = nest.pack_sequence_as(value, [2])
            assert packed == type(value)(packed)
            assert packed is not value
        flat = [1]
        assert nest.flatten(flat) is not flat


def test_functions_that_change_what_they_map():
    def run():
        value = [1, 2, 3]

        def function(item):
            value.append(item)
            return item

        return shown(outcome(nest.map_structure, (function, value), {})), len(value)

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_protocol_that_is_set_later():
    def run():
        def flattened(self):
            return (), (self.value,)

        seen = []
        for before, of_base in itertools.product((True, False), repeat=2):

            class Base:
                def __init__(self, value):
                    self.value = value

                def __repr__(self):
                    return "Late"

            class Late(Base):
                pass

            if before:
                seen.append(shown(nest.flatten([Late([1])])))
            kind = Base if of_base else Late
            kind.__tf_flatten__ = flattened
            kind.__tf_unflatten__ = classmethod(lambda cls, metadata, values: cls(*values))
            for name in ("is_nested", "flatten", "paths", "map", "like"):
                seen.append(shown(outcome(ONE[name], ([Late([1])],), {})))
                seen.append(shown(outcome(ONE[name], (Late([1]),), {})))
            del kind.__tf_unflatten__
            seen.append(shown(outcome(nest_util.sequence_like, (Late([1]), [1]), {})))
            seen.append(shown(outcome(nest.flatten, (Late([1]),), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_namedtuples_that_change():
    def run():
        class Late(collections.namedtuple("Late", "x y")):
            __slots__ = ()

        seen = [shown(nest.flatten_with_tuple_paths(Late(1, 2)))]
        Late.x = property(lambda self: "other")
        seen.append(shown(nest.flatten_with_tuple_paths(Late(1, 2))))
        Late._fields = ("y", "x")
        seen.append(shown(outcome(nest.flatten_with_tuple_paths, (Late(1, 2),), {})))
        seen.append(shown(outcome(nest_util.sequence_like, (Late(1, 2), [3, 4]), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_many_classes():
    def run():
        seen = []
        for number in range(200):
            kind = type(f"Kind{number}", (), {})
            if number % 3 == 0:
                kind.is_tensor_like = True
            value = kind()
            seen.append((tf.is_tensor(value), len(nest.flatten([value, 1]))))
        return seen

    with fastops.accelerated(only=LAYERS):
        assert run() == [(number % 3 == 0, 2) for number in range(200)]


# ---------------------------------------------------------------------------------------------
# Is it a tensor?
# ---------------------------------------------------------------------------------------------


class TensorLike:
    def is_tensor_like(self):
        return True


class Blocked:
    is_tensor_like = None


class Guessing:
    def __getattr__(self, name):
        if name == "is_tensor_like":
            return "guessed"
        raise AttributeError(name)


class Lying:
    __class__ = property(lambda self: tf.Tensor)


class Counting(type):
    def is_tensor_like(cls):
        return True


class OfMeta(metaclass=Counting):
    pass


def with_own(value):
    plain = Plain(1)
    plain.is_tensor_like = value
    return plain


VALUES = (
    *(
        1,
        2.5,
        "text",
        None,
        True,
        b"x",
        [1],
        (1,),
        {},
        {1},
        1j,
        object,
        tf.Tensor,
        TensorLike,
        OfMeta,
    ),
    *(
        np.ones(2),
        np.float32(1),
        np.int64(3),
        tf.float32,
        tf.TensorShape([1]),
        tf,
        len,
        Point(1, 2),
    ),
    *(T, tf.Variable(1.0), tf.sparse.eye(2), tf.ragged.constant([[1]]), tf.TensorSpec([1])),
    *(
        TensorLike(),
        Blocked(),
        Guessing(),
        Lying(),
        with_own(1),
        with_own(None),
        Plain(1),
        Masked(1, 2),
    ),
    *(wrapt.ObjectProxy(T), tracked({"a": 1}), tracked([1]), tf.IndexedSlices(T, tf.constant([0]))),
    *(tf.data.Dataset.range(2), tf.Module(), OfMeta(), tf.keras.Input([2]), tf.GradientTape()),
)


def test_is_tensor():
    def run():
        return [tf.is_tensor(value) for value in VALUES for _ in range(2)]

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert True in want
    assert False in want


def test_static_values():
    def run():
        calls = [((value,), kwargs) for value in VALUES for kwargs in ({}, {"partial": True})]
        calls += [((), {}), ((1, 2, 3), {}), ((), {"tensor": 5}), ((), {"odd": 5})]
        return [shown(outcome(tf.get_static_value, *asked)) for asked in calls]

    want, got = in_both(run, only=LAYERS)
    assert want == got
    value = {"a": 1}
    with fastops.accelerated(only=LAYERS):
        assert tf.get_static_value(value) is value


def test_plain_predicates_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        for value in (1, 2.5, "text", None, [1], np.ones(2), T, Plain(1), tf.Module(), object):
            tf.is_tensor(value)
            assert not frames(tf.is_tensor, (value,), {}), value
            if value is not T:
                assert not frames(tf.get_static_value, (value,), {}), value


def test_classes_become_like_tensors():
    def run():
        class Base:
            pass

        class Late(Base):
            pass

        value, seen = Late(), []

        def ask():
            seen.append((tf.is_tensor(value), tf.is_tensor(Late)))

        ask()
        ask()
        value.is_tensor_like = lambda: True
        ask()
        del value.is_tensor_like
        ask()
        Base.is_tensor_like = lambda self: True
        ask()
        del Base.is_tensor_like
        ask()  # abstract classes cache the result
        value.__class__ = Plain
        ask()
        value.__class__ = TensorLike
        ask()
        value.__class__ = Late
        Late.__bases__ = (TensorLike,)
        ask()
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_classes_are_registered():
    def run():
        class Late:
            pass

        class Base(metaclass=type(tensor_util.IsTensorLike)):
            pass

        seen = [tf.is_tensor(Late()), tf.is_tensor(Base())]
        tensor_util.IsTensorLike.register(Late)
        seen += [tf.is_tensor(Late()), tf.is_tensor(Base())]
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


# ---------------------------------------------------------------------------------------------
# Modules
# ---------------------------------------------------------------------------------------------


class Frozenish(tf.Variable):
    pass


class Layer(tf.Module):
    def __init__(self, size=1, **others):
        super().__init__()
        self.weight = tf.Variable(float(size), name="w")
        self.fixed = tf.Variable(2.0, trainable=False, name="f")
        for name, value in others.items():
            setattr(self, name, value)


class Ignoring(Layer):
    _TF_MODULE_IGNORED_PROPERTIES = frozenset((*tf.Module._TF_MODULE_IGNORED_PROPERTIES, "hidden"))


def modules():
    """Make modules of all kinds."""
    shared = tf.Variable(7.0, name="s")
    yield Layer(3)
    yield Layer(1, sub=Layer(2), other=[Layer(3), {"b": Layer(4), "a": shared}], again=shared)
    yield Layer(1, many=(shared, [shared]), point=Point(shared, Layer(5)), text="text", none=None)
    yield Ignoring(1, hidden=Layer(2), sub=Ignoring(3, hidden=shared))
    yield Layer(
        1, sparse=tf.sparse.eye(2), ragged=[tf.ragged.constant([[1]])], spec=tf.TensorSpec([])
    )
    yield Layer(
        1, inner=Layer(2, sparse=tf.sparse.eye(2)), attrs=Attrs(shared, 1), masked=Masked(1, shared)
    )
    cyclic = Layer(1, a=Layer(2))
    cyclic.a.back = cyclic
    cyclic.b = cyclic.a
    yield cyclic
    odd = Layer(1)
    odd.__dict__["keys"] = {"a": 1, 1: 2}
    yield odd
    odd = Layer(1, sub=Layer(2))
    odd.sub.__dict__["keys"] = {"a": shared, None: 2}
    yield odd
    odd = Layer(1)
    odd.__dict__[5] = 1
    yield odd
    yield tf.keras.Sequential([tf.keras.layers.Dense(2)])


def described(leaf):
    """Describe the content of a module, to compare runs with and without `install`."""
    if isinstance(leaf, tf.Variable):
        return leaf.name, float(leaf), leaf.trainable
    return shown(leaf) if not isinstance(leaf, tf.Module) else type(leaf).__name__


def contents(values):
    def listed():
        return [
            (value[0], described(value[1]))
            if type(value) is tuple and len(value) == 2 and type(value[0]) is tuple
            else described(value)
            for value in values()
        ]

    return outcome(listed, (), {})


FLATTENED = {
    "variables": lambda m: m.variables,
    "trainable_variables": lambda m: m.trainable_variables,
    "non_trainable_variables": lambda m: m.non_trainable_variables,
    "submodules": lambda m: m.submodules,
    "everything": lambda m: m._flatten(),
    "with paths": lambda m: m._flatten(with_path=True),
    "paths of variables": lambda m: m._flatten(
        predicate=tf_module._is_variable, with_path=True, expand_composites=True
    ),
    "no submodules": lambda m: m._flatten(recursive=False, expand_composites=True),
    "in another order": lambda m: m._flatten(attribute_traversal_key=lambda key: str(key)[::-1]),
    "chosen": lambda m: m._flatten(predicate=lambda leaf: isinstance(leaf, str)),
    "odd flags": lambda m: m._flatten(recursive=1, with_path=0),
    "what fails": lambda m: m._flatten(predicate=lambda leaf: leaf.missing),
}


@pytest.mark.parametrize("name", FLATTENED)
def test_modules(name):
    def run():
        return [shown(contents(lambda m=m: FLATTENED[name](m))) for m in modules()]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_plain_modules_enter_no_python():
    module = Layer(1, sub=Layer(2), nothing=None, text="text")
    with fastops.accelerated(only=LAYERS):
        module.trainable_variables  # noqa: B018
        entered = frames(lambda: module.trainable_variables, (), {})
    assert set(entered) <= {"trainable_variables", "_flatten", "trainable", "<lambda>"}


def test_modules_are_walked_in_each_call():
    def run():
        module, seen = Layer(1, sub=Layer(2), zebra="z"), []
        for leaf in module._flatten(predicate=lambda leaf: isinstance(leaf, tf.Variable)):
            seen.append(float(leaf))
            module.sub.more = tf.Variable(9.0)
        leaves = module._flatten(predicate=lambda leaf: leaf.missing)
        for _ in range(2):
            seen.append(shown(outcome(next, (leaves,), {})))
        seen.append(iter(leaves) is leaves)
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


class Counted:
    """Observes assignments, as a second base class beside one of TensorFlow's."""

    def __setattr__(self, name, value):
        vars(self).setdefault("log", []).append((name, type(value).__name__))
        super().__setattr__(name, value)


class Observed(tf.Module, Counted):
    def __getattr__(self, name):
        vars(self).setdefault("asked", []).append(name)
        raise AttributeError(name)

    @property
    def failing(self):
        raise ValueError("no")

    @property
    def constant(self):
        return 7


def test_attributes():
    values = [make for make in EVERY if make is not circular]

    def run():
        seen = []
        for kind, tracking in itertools.product((tf.Module, Observed), (True, False)):
            module = kind()
            if not tracking:
                module._self_setattr_tracking = False
            for i, make in enumerate(values):
                value = make()
                module.attribute = value
                seen.append((shown(value), module.attribute is value, shown(module.attribute)))
                module.attribute = module.attribute
                seen.append(shown(outcome(setattr, (module, f"attribute_{i % 7}", make()), {})))
            for name, value in (("failing", 1), ("constant", 7), ("constant", 8), (3, 4)):
                seen.append(shown(outcome(setattr, (module, name, value), {})))
            module.hidden = module._no_dependency([1, 2])
            module.v = tf.Variable(1.0)
            module.v = tf.Variable(2.0)
            module._maybe_initialize_trackable()
            seen.append([name for name, _ in module._checkpoint_dependencies])
            seen.append([v.numpy() for v in module.variables])
            seen.append([vars(module).get(name) for name in ("log", "asked")])
            seen.append(list(vars(module)))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_attributes_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        module = tf.Module()
        for value in (1, "text", None, T, (1, T), tf.float32, np.ones(2), run_nothing):
            assert not frames(setattr, (module, "attribute", value), {})
        module.attribute = [1]
        assert type(module.attribute) is not list


def run_nothing():
    pass


def test_the_class_of_variables_may_change():
    def run():
        class Late:
            trainable = True

        module = tf.Module()
        module.late = Late()
        seen = [len(module.variables), len(module.trainable_variables)]
        tf.Variable.register(Late)
        seen += [len(module.variables), len(module.trainable_variables)]
        Late.trainable = False
        seen += [len(module.variables), len(module.trainable_variables)]
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got == [0, 0, 1, 1, 1, 0]


# ---------------------------------------------------------------------------------------------
# Conversions and shapes
# ---------------------------------------------------------------------------------------------

CONVERTED = (
    *(1, 2.5, True, 2**40, 2**70, 1j, "text", None, [1, 2], (1.5,), np.ones(2), np.float64(2), T),
    *(np.arange(3), np.ones((2, 2), np.float16), np.array(["a"]), tf.constant(1), tf.Variable(1.0)),
    *(
        object(),
        [T, T],
        (T, tf.constant([1])),
        [T, 1.0],
        [T, tf.ones(3)],
        [tf.constant(1), 2],
        [[T[0], 1], (2.5, T[0])],
        [],
        [[], [1]],
        b"x",
        tf.TensorShape([2]),
        tf.sparse.eye(2),
        tf.TensorShape(None),
        tf.TensorShape([2, None]),
        tf.TensorShape([]),
        tf.TensorShape([1, 2**31]),
        tf.TensorShape([2**31 - 1, 0]),
        tf.float32,
    ),
)
DTYPES = (
    None,
    tf.float32,
    tf.int32,
    tf.float64,
    tf.string,
    "float32",
    np.int64,
    np.dtype(np.float32),
    bool,
    "nonsense",
    tf.resource,
)


def test_conversions():
    def run():
        seen = []
        for value, dtype in itertools.product(CONVERTED, DTYPES):
            for convert in (ops.convert_to_tensor, tensor_conversion_registry.convert):
                seen.append(shown(outcome(convert, (value, dtype), {})))
                for hint in DTYPES:
                    kwargs = {"dtype": dtype, "preferred_dtype": hint, "name": "name"}
                    seen.append(shown(outcome(convert, (value,), kwargs)))
            kwargs = {"preferred_dtype": tf.float32, "dtype_hint": dtype}
            seen.append(shown(outcome(ops.convert_to_tensor, (value,), kwargs)))
            kwargs = {"accepted_result_types": (int,)}
            seen.append(shown(outcome(ops.convert_to_tensor, (value, dtype), kwargs)))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_conversions_keep_tensors_and_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        for convert in (ops.convert_to_tensor, tensor_conversion_registry.convert):
            assert convert(T) is T
            assert convert(T, tf.float32) is T
            for value in ("text", [T, T], (T[0], 1.0), ([True], [False])):
                convert(value)
                assert not frames(convert, (value,), {})
            for value in (T, 1, 2.5, np.ones(2), [1, 2]):
                convert(value)
                assert not frames(convert, (value,), {})
                assert not frames(convert, (value,), {"preferred_dtype": tf.float64})
            for kwargs in ({}, {"dtype": np.int64}, {"preferred_dtype": np.int32}):
                assert not frames(convert, (tf.TensorShape([2, 3]),), kwargs)
            assert not frames(convert, (2,), {"dtype": np.float32})


@pytest.mark.parametrize(
    ("op", "function", "args"),
    [
        ("ConcatV2", lambda *args: tf.concat(*args), ([tf.constant([1, 2]), [3], [4, 5]], 0)),
        ("Shape", lambda *args: tf.shape(*args), ([],)),
        ("Cast", lambda *args: tf.cast(*args), (2.5, tf.int32)),
        ("StridedSlice", lambda x: x[: np.int32(1)], (T,)),
    ],
)
def test_plain_values_reach_the_kernel(op, function, args):
    with fastops.accelerated():
        for _ in range(2):
            function(*args)
        fastops.reset_stats()
        function(*args)
        stats = fastops.stats().ops[op]
    assert (stats.direct, stats.tensorflow) == (1, 0)


def test_conversions_in_graphs():
    def run():
        @tf.function
        def traced(x):
            made = [ops.convert_to_tensor(value, name="made") for value in (1.5, T, np.ones(2), x)]
            return made, tf.is_tensor(x), tf.get_static_value(made[0]), nest.flatten([x, {"a": T}])

        concrete = traced.get_concrete_function(tf.TensorSpec([2]))
        return str(concrete.graph.as_graph_def()), shown(
            tf.nest.flatten(concrete.structured_outputs)
        )

    want, got = in_both(run, only=LAYERS)
    assert want == got


DIMS = (
    *(None, (), [], (1, 2), [3, None], (None,), (0,), (-1,), [1, -2], (True,), ("a",), (1.5,), 3),
    *(tf.TensorShape([1, None]), tf.TensorShape(None), np.array([1, 2]), (np.int64(3),), range(2)),
    *(tf.compat.v1.Dimension(4), [tf.compat.v1.Dimension(None), 2], tf.TensorShape([2]).as_proto()),
    *(Tuple((1,)), List([2]), {1: 2}, "12", (2**70,), ([1],), (tf.constant(2),)),
    *(np.array([1, -2]), np.array(3), np.array([[1]]), np.array([1.5]), np.array([True])),
    *(np.array([1, 2], ">i8"), np.array([], np.int32), np.array([2], object), (np.uint8(3), None)),
    *(np.ma.array([1, 2]), [np.int32(-1)], np.int64(2), (np.bool_(True),), np.array([3, 4])[::-1]),
)


def test_shapes():
    def run():
        shapes = [shown(outcome(tf.TensorShape, (dims,), {})) for dims in DIMS]
        shapes.append(shown(outcome(tf.TensorShape, (), {})))
        shapes.append(shown(outcome(tf.TensorShape, (), {"dims": (1,)})))
        shapes.append(shown(outcome(tf.TensorShape, (1, 2), {})))

        class Own(tf.TensorShape):
            pass

        return [*shapes, shown(Own([1, None])), Own((1,))._dims]

    want, got = in_both(run, only=LAYERS)
    assert want == got
    with fastops.accelerated(only=LAYERS):
        assert not frames(tf.TensorShape, ((1, None, 3),), {})
        assert not frames(tf.TensorShape, (tf.TensorShape([1]),), {})
        assert not frames(tf.TensorShape, (np.array([1, 2]),), {})
        assert not frames(tf.TensorShape, ([np.int32(1)],), {})


class OwnShape(tf.TensorShape):
    dims = property(lambda self: None)


SHAPES = ([], [2], [3, None], None, [0, 2], [2**40, 2**40, 2**40])
TOLD = {  # properties of a shape
    "rank": lambda shape: shape.rank,
    "ndims": lambda shape: shape.ndims,
    "list": lambda shape: shape.as_list(),
    "defined": lambda shape: shape.is_fully_defined(),
    "elements": lambda shape: shape.num_elements(),
    "odd call": lambda shape: shape.as_list(1),
    "odd keyword": lambda shape: shape.num_elements(odd=1),
}


@pytest.mark.parametrize("name", TOLD)
def test_properties_of_shapes(name):
    def run():
        kinds = (tf.TensorShape, OwnShape)
        return [shown(outcome(TOLD[name], (kind(d),), {})) for kind in kinds for d in SHAPES]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_shapes_together():
    def run():
        kinds, seen = (tf.TensorShape, OwnShape), []
        for kind, shape in itertools.product(kinds, SHAPES):
            for other in (*DIMS, OwnShape([2])):
                seen.append(shown(outcome(kind(shape).concatenate, (other,), {})))
                seen.append(shown(outcome(kind(shape).__add__, (other,), {})))
            seen.append(shown(outcome(kind(shape).concatenate, (), {"other": [2]})))
            seen.append(shown(outcome(kind(shape).concatenate, ([1], [2]), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_properties_of_shapes_enter_no_python():
    shape = tf.TensorShape([2, 3])
    with fastops.accelerated(only=LAYERS):
        for ask in (shape.as_list, shape.is_fully_defined, shape.num_elements):
            assert not frames(ask, (), {})
        for other in (shape, [None], ()):
            assert not frames(shape.concatenate, (other,), {})
        assert frames(lambda: shape.rank, (), {}) == []


# ---------------------------------------------------------------------------------------------
# Modes
# ---------------------------------------------------------------------------------------------


def modes():
    return (
        tf.executing_eagerly(),
        tf.inside_function(),
        tf.compat.v1.executing_eagerly_outside_functions(),
        shown(outcome(tf.executing_eagerly, (1,), {})),
        shown(outcome(tf.inside_function, (), {"odd": 1})),
    )


def test_modes():
    def run():
        seen = [modes()]

        @tf.function
        def traced():
            seen.append(modes())
            with tf.init_scope():
                seen.append(modes())
            return tf.map_fn(lambda x: seen.append(modes()) or x, tf.constant([1.0, 2.0]))

        traced()
        with tf.Graph().as_default():
            seen.append(modes())
            with tf.init_scope():
                seen.append(modes())
            traced()
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(modes).result())
        tf.config.run_functions_eagerly(True)
        traced()
        tf.config.run_functions_eagerly(False)
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert {mode[:2] for mode in want} >= {(True, False), (False, True), (False, False)}


def test_modes_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        assert not frames(tf.executing_eagerly, (), {})
        assert not frames(tf.inside_function, (), {})
        assert not frames(tf.debugging.is_traceback_filtering_enabled, (), {})


def test_filtering_of_tracebacks():
    def run():
        asked = tf.debugging.is_traceback_filtering_enabled
        seen = [asked()]
        tf.debugging.disable_traceback_filtering()
        seen.append(asked())
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(asked).result())
        traceback_utils._ENABLE_TRACEBACK_FILTERING.value = 5
        seen.append(asked())
        tf.debugging.enable_traceback_filtering()
        return [*seen, asked(), shown(outcome(asked, (1,), {}))]

    want, got = in_both(run, only=LAYERS)
    assert want == got


# ---------------------------------------------------------------------------------------------
# Dtypes, and attributes that tensors do not have
# ---------------------------------------------------------------------------------------------

OF_DTYPES = (
    *(tf.float32, tf.int64, tf.resource, tf.variant, tf.float32._as_ref, tf.dtypes.DType(9)),
    *(np.float32, np.int64, np.dtype(np.int32), np.dtype(">f4"), np.bool_, float, bool, int, str),
    *(object, "float32", "float", "int32_ref", "nonsense", 1, 9, 101, 1000, None, True, [1], T),
    *(np.ones(2), np.float32(1), Name("float32"), tf.Variable(1.0), list, tf.constant(1).dtype),
)


def test_dtypes():
    def run():
        seen = [shown(outcome(tf.as_dtype, (value,), {})) for value in OF_DTYPES]
        seen += [shown(outcome(tf.as_dtype, *call)) for call in (((), {}), ((1, 2), {}))]
        seen.append(shown(outcome(tf.as_dtype, (), {"type_value": "int32"})))
        for one, other in itertools.product(OF_DTYPES[:6], OF_DTYPES):
            seen.append(shown(outcome(lambda a, b: (a == b, a != b, b == a), (one, other), {})))
        return [*seen, *[(dtype.base_dtype, hash(dtype)) for dtype in OF_DTYPES[:6]]]

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_dtypes_with_handles():
    variant = tf.dtypes.DType(21, handle_data=None)
    assert tf.as_dtype(variant) is tf.variant
    with fastops.accelerated(only=LAYERS):
        assert tf.as_dtype(variant) is tf.variant
        assert {tf.float32: 1}[tf.as_dtype(np.float32)] == 1


def test_dtypes_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        for value in (tf.float32, np.float32, "float32", float):
            assert not frames(tf.as_dtype, (value,), {})
        assert not frames(lambda: tf.float32 == tf.int32 or tf.float32 != tf.int32, (), {})
        assert not frames(lambda: tf.float32.base_dtype, (), {})


def test_attributes_that_tensors_do_not_have():
    def run():
        seen, tensor = [], tf.constant([1.0])
        tensor.own = 5
        graph = tf.Graph()
        with graph.as_default():
            symbolic = tf.constant(1.0)
        for value in (tensor, symbolic):
            for name in ("missing", "T", "data", "size", "own", "shape", "_missing", Name("odd")):
                seen.append(shown(outcome(getattr, (value, name), {})))
                seen.append((hasattr(value, name), getattr(value, name, "none") == "none"))
                seen.append(shown(outcome(value.__getattr__, (name,), {})))
            seen.append(shown(outcome(value.__getattr__, (5,), {})))
            seen.append(shown(outcome(value.__getattr__, (), {})))
        try:
            tensor.missing  # noqa: B018
        except AttributeError as error:
            seen.append((error.name, error.obj is tensor))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_attributes_that_tensors_do_not_have_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        assert not frames(hasattr, (T, "missing"), {})
        assert frames(hasattr, (T, "astype"), {})


def test_dimensions():
    def run():
        seen = []
        for shape in (tf.TensorShape(dims) for dims in (None, (), (1, None, 3), [2**40])):
            seen += [shown(shape.dims), shown(shape[:1].dims), shape.dims is shape.dims]
        odd = tf.TensorShape([1])
        for dims in ([1], (-1,), (True,), ("a",)):
            odd._dims = dims
            seen.append(shown(outcome(lambda: odd.dims, (), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert tf.TensorShape.dims.__doc__ == vars(tf.TensorShape)["dims"].__doc__


# ---------------------------------------------------------------------------------------------
# Decorators and name scopes
# ---------------------------------------------------------------------------------------------


def a_default(x, y=1, *rest, z=2.5, **others):
    """Return a default, and have a docstring."""


def annotated(x: int, y: "str" = "a") -> tf.Tensor:
    pass


def only_positional(x, y=None, /, z=None):
    pass


def odd_default(x=a_default):
    pass


class Callables:
    def method(self, x, y=1):
        """Be a method with a docstring."""

    @classmethod
    def of_class(cls, x):
        pass

    @staticmethod
    def of_none(x):
        pass

    def __call__(self, x):
        pass

    def __len__(self):
        return 0


def with_attributes():
    def function(x):
        pass

    function.own = 1
    return function


def signed():
    def function(x):
        pass

    function.__signature__ = tf_inspect.signature(annotated)
    return function


def wrapping():
    @functools.wraps(a_default)
    def function(*args, **kwargs):
        pass

    return function


CALLABLES = (
    *(a_default, annotated, only_positional, odd_default, lambda: 1, lambda *x, a, b=1: 2),
    *(
        Callables().method,
        Callables.of_class,
        Callables.of_none,
        Callables(),
        Callables,
        Callables.method,
    ),
    *(
        with_attributes(),
        signed(),
        wrapping(),
        functools.partial(a_default, 1),
        len,
        max,
        tf.add,
        tf.shape,
    ),
    *(tf.function(annotated), tf.Module().__init__, [].append, 5, None, "text"),
)


def test_decorators():
    def run():
        seen = []
        for target in (*CALLABLES, *CALLABLES):
            for kwargs in ({}, {"decorator_name": "name", "decorator_doc": "doc"}):

                def wrapper(*args, **kwargs):
                    pass

                wrapper.own = 5

                def decorate(target=target, wrapper=wrapper, kwargs=kwargs):
                    return tf_decorator.make_decorator(target, wrapper, **kwargs)

                made = outcome(decorate, (), {})
                assert made is wrapper or isinstance(made, Failure)
                seen.append(shown(made))
                if made is wrapper:
                    entries = {**vars(made)}
                    decorator = entries.pop("_tf_decorator")
                    seen += [shown(entries), shown({**vars(decorator)}), type(decorator)]
                    names = ("__name__", "__qualname__", "__module__", "__doc__")
                    seen.append([shown(getattr(made, name)) for name in names])
                    seen.append(shown(outcome(tf_inspect.signature, (made,), {})))
                    seen.append(shown(outcome(tf_inspect.getfullargspec, (made,), {})))
            seen.append(shown(outcome(tf_inspect.getfullargspec, (target,), {})))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_decorators_that_are_not_functions():
    class Wrapper:
        def __init__(self, **own):
            self.__dict__.update(own)

    class Slotted:
        __slots__ = ("__name__", "_tf_decorator")

    def run():
        seen = []
        for target in CALLABLES:
            for wrapper in (Wrapper(), Wrapper(own=5), Slotted(), len, functools.partial(len)):
                made = outcome(tf_decorator.make_decorator, (target, wrapper, "name"), {})
                seen.append(shown(made))
                seen.append(shown({**getattr(wrapper, "__dict__", {})}))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_functions_whose_signatures_change():
    def run():
        def function(x, y=1):
            pass

        seen = []

        def ask():
            made = tf_decorator.make_decorator(function, lambda *args: None)
            seen.append((str(made.__signature__), str(made._tf_decorator.__signature__)))
            seen.append(shown(tf_inspect.getfullargspec(function)))

        ask()
        function.__defaults__ = (2,)
        ask()
        function.__defaults__ = None
        ask()
        function.__annotations__["x"] = int
        ask()
        function.__annotations__["x"] = float
        ask()
        function.__annotations__ = {}
        function.__code__ = (lambda a, *, b=1: None).__code__
        ask()
        function.__kwdefaults__ = {"b": 5}
        ask()
        function.__signature__ = tf_inspect.signature(annotated)
        ask()
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert len(set(map(str, want))) > 10


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are read with the function")
def test_annotations_that_cannot_be_read():
    def run():
        seen, names = [], {"calls": []}
        exec("def function(x: calls.append(1) or missing): pass", names)
        function = names["function"]
        for call in (tf_inspect.getfullargspec, inspect.signature, tf_inspect.signature):
            seen.append(shown(outcome(call, (function,), {})))
        made = outcome(tf_decorator.make_decorator, (function, lambda x: None), {})
        seen.append(made.kind if isinstance(made, Failure) else shown(vars(made)))
        names["missing"] = int
        seen.append(str(inspect.signature(function)))
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got
    assert isinstance(want, list)


def test_decorators_of_plain_functions_enter_no_python():
    with fastops.accelerated(only=LAYERS):
        for target in (a_default, annotated, Callables().method):
            tf_decorator.make_decorator(target, lambda: None)
            assert not frames(tf_decorator.make_decorator, (target, lambda: None), {})
        assert not frames(tf_inspect.getfullargspec, (lambda x, *y, **z: 1,), {})


def test_name_scopes():
    def run():
        seen = []

        def look(name):
            scope = outcome(tf.name_scope, (name,), {})
            if isinstance(scope, Failure):
                seen.append(shown(scope))
                return
            with scope as entered:
                seen.append((entered, tf.get_current_name_scope(), len(scope._exit_fns)))
                with tf.name_scope("inner") as inner, scope as again:
                    seen.append((inner, again, len(scope._exit_fns)))
            seen.append((tf.get_current_name_scope(), scope._exit_fns, scope.name))
            try:
                with scope:
                    raise KeyError("inside")
            except KeyError:
                seen.append(tf.get_current_name_scope())
            seen.append(shown(outcome(scope.__exit__, (None, None, None), {})))
            seen.append(shown(outcome(scope.__enter__, (1,), {})))

        names = ("outer", "", "outer/", "a/b", "/", Name("name"), None, 5, "with space")
        for name in names:
            look(name)
        with tf.name_scope("around"):
            for name in names:
                look(name)
        traced = tf.function(lambda: look("traced"))
        seen.append(shown(outcome(traced.get_concrete_function, (), {}).__class__))
        with tf.Graph().as_default():
            look("graph")
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_plain_scopes_enter_no_python():
    def program():
        with scope:
            pass

    scope = tf.name_scope("outer")
    with fastops.accelerated(only=LAYERS):
        assert not frames(program, (), {})


def test_scopes_that_are_open_while_installing():
    outer, inner = tf.name_scope("outer"), tf.name_scope("inner")
    with outer:
        fastops.install(only=LAYERS)
        with inner:
            assert tf.get_current_name_scope() == "outer/inner"
            fastops.uninstall()
        assert tf.get_current_name_scope() == "outer"
    assert tf.get_current_name_scope() == ""


# ---------------------------------------------------------------------------------------------
# Distribution
# ---------------------------------------------------------------------------------------------

REDUCED = (
    *(
        T,
        [T, T],
        (T, {"b": T, "a": [T]}),
        [],
        None,
        5,
        [1.0],
        [T, None],
        tf.Variable(1.0),
        np.ones(2),
    ),
    *([tf.IndexedSlices(T, tf.constant([0, 1]))], [T, tf.IndexedSlices(T, tf.constant([0, 1]))]),
    *(tf.sparse.eye(2), Point(T, T), "text", [tf.constant("text")]),
)


def test_reductions_of_one_replica():
    def run():
        context, seen = tf.distribute.get_replica_context(), []
        options = tf.distribute.experimental.CommunicationOptions()
        for value in REDUCED:
            for operation in (tf.distribute.ReduceOp.SUM, "mean", "SUM", "nonsense", None):
                seen.append(shown(outcome(context.all_reduce, (operation, value), {})))
            seen.append(shown(outcome(context.all_reduce, ("sum", value, options), {})))
        with tf.GradientTape() as tape:
            tape.watch(T)
            result = context.all_reduce("sum", [T * 2.0, T])
        seen.append(shown(tape.gradient(result, T)))
        strategy = tf.distribute.get_strategy()
        other = tf.distribute.OneDeviceStrategy("/cpu:0")
        seen.append(
            shown(other.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", T)))
        )
        seen.append(
            shown(strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", T)))
        )

        def merged(_):
            return shown(outcome(context.all_reduce, ("sum", T), {}))

        seen.append(context.merge_call(merged))
        traced = tf.function(lambda x: tf.distribute.get_replica_context().all_reduce("sum", x))
        nodes = traced.get_concrete_function(T).graph.as_graph_def().node
        seen.append([(node.op, node.name) for node in nodes])
        return seen

    want, got = in_both(run, only=LAYERS)
    assert want == got


def test_a_reduction_is_a_copy():
    context = tf.distribute.get_replica_context()
    with fastops.accelerated(only=LAYERS):
        (result,) = context.all_reduce("sum", [T])
        entered = frames(context.all_reduce, ("sum", [T]), {})
    assert result is not T
    assert "all_reduce" not in entered
    assert "decorated" not in entered


def test_threads():
    module = Layer(1, sub=Layer(2))
    expected = [float(variable) for variable in module.trainable_variables]

    def work(number):
        for step in range(50):
            kind = type(f"Of{number}Step{step}", (), {"is_tensor_like": True} if step % 2 else {})
            value = kind()
            assert tf.is_tensor(value) == bool(step % 2)
            assert nest.flatten([value, {"b": 1, "a": (value,)}]) == [value, value, 1]
            assert nest.map_structure(lambda x: x, (value, [step])) == (value, [step])
            assert [float(variable) for variable in module.trainable_variables] == expected
        return number

    with fastops.accelerated(), ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == list(range(8))
