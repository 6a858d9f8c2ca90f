"""Layers of a user, each of which reads another kind of state."""

import types
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf

import fastops
from guards import settings
from guards.settings import TABLE as IMPORTED

FACTOR = 2.0
PAIRS = ([1.0, 2.0], [3.0])
Point = namedtuple("Point", "x y")


@dataclass
class Config:
    scale: float = 2.0
    weights: list = field(default_factory=lambda: [1.0, 2.0])


class Holder:
    """An object of a user's class."""

    def __init__(self):
        self.scale = 3.0
        self.inner = types.SimpleNamespace(scale=0.5)


class Float(float):
    """A number with an attribute."""


def noted(x):
    return x * noted.scale


noted.scale = 3.0


def with_default(x, scale=2.0, *, shift=1.0):
    return x * scale + shift


def closure(scale):
    def apply(x):
        return x * scale[0]

    return apply


class Reader(keras.Layer):
    """A layer that calls one of the functions below."""

    from_class = Holder()
    of_class = (2.0, [1.0])
    of_class_array = np.ones(4, np.float32)
    ordered = OrderedDict(a=1.0, b=2.0)  # noqa: RUF012
    config = Config

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.mod = settings
        self.holder = Holder()
        self.scale = 2.0
        self._self_scale = 3.0
        self.number = Float(2.0)
        self.number.extra = 1.0
        self.table = types.MappingProxyType(IMPORTED)
        self.order = OrderedDict(a=2.0, b=3.0)
        self.made = defaultdict(float, a=1.0)
        self.point = Point(1.0, [2.0])
        self.constant = tf.constant(2.0)
        self.array = np.full(4, 2.0, np.float32)
        self.apply = closure([2.0])

    @property
    def doubled(self):
        return self.scale * 2

    @staticmethod
    def times(x):
        return x * FACTOR

    @classmethod
    def of_type(cls, x):
        return x * cls.of_class[0]

    def call(self, x):
        return self.read(self, x)


def reads_global(layer, x):
    return x * FACTOR


def reads_module(layer, x):
    return x * settings.SCALE


def reads_held_module(layer, x):
    return x * layer.mod.SCALE + layer.mod.TABLE["shift"]


def reads_module_array(layer, x):
    return x * settings.ROW


def reads_module_class(layer, x):
    return x * settings.Named.factor + settings.Named.limits[0]


def reads_imported(layer, x):
    return x + IMPORTED["shift"]


def imports(layer, x):
    from guards import settings as here

    return x * here.SCALE


def reads_class_object(layer, x):
    return x * layer.from_class.scale * layer.from_class.inner.scale


def reads_class_tuple(layer, x):
    return x * layer.of_class[0] + layer.of_class[1][0]


def reads_class_array(layer, x):
    return x * layer.of_class_array


def reads_class_of_class(layer, x):
    return x * layer.config.scale


def reads_order_of_class(layer, x):
    return x * next(iter(layer.ordered.values()))


def reads_order(layer, x):
    return x * next(iter(layer.order.values()))


def reads_default_dict(layer, x):
    return x * layer.made["a"]


def reads_function(layer, x):
    return noted(x)


def reads_defaults(layer, x):
    return with_default(x)


def reads_closure(layer, x):
    return layer.apply(x)


def reads_self_name(layer, x):
    return x * layer._self_scale


def reads_number(layer, x):
    return x * layer.number.extra


def reads_proxy(layer, x):
    return x + layer.table["shift"]


def reads_point(layer, x):
    return x + layer.point.y[0]


def reads_tensor(layer, x):
    return x * layer.constant


def reads_array(layer, x):
    return x * layer.array


def reads_tuple_of_lists(layer, x):
    return x * PAIRS[0][1] + PAIRS[1][0]


def reads_property(layer, x):
    return x * layer.doubled


def reads_static(layer, x):
    return layer.times(x) + layer.of_type(x)


def reads_holder(layer, x):
    return x * layer.holder.scale + layer.holder.inner.scale


def reads_by_name(layer, x):
    return x * getattr(settings, "SCALE")  # noqa: B009


def reads_any_name(layer, x):
    return x * getattr(settings, "".join(["SCA", "LE"]))


def reads_globals(layer, x):
    return x * globals().get("FACTOR")


def reads_optional(layer, x):
    return x * getattr(settings, "ABSENT", 1.0)


READS = {
    name: function
    for name, function in list(globals().items())
    if name.startswith(("reads_", "imports"))
}
"""Functions of a layer and its input, by name."""


def reader(name):
    """Return a layer of a new class, since refused objects are counted by class."""
    kind = type(f"Reader_{name}", (Reader,), {"__module__": __name__})
    return fastops.keras.replayable(kind)(READS[name])


def undeclared_reader(name):
    """Return a layer of a new class that is not declared."""

    class Undeclared(Reader):
        def call(self, x):
            return self.read(self, x)

    return Undeclared(READS[name])


UNPROVEN = {
    *("imports", "reads_any_name", "reads_function", "reads_globals", "reads_optional"),
    *("reads_order", "reads_order_of_class", "reads_proxy"),
}
"""Functions whose code does not show that it is pure."""

REFUSED = {"reads_any_name", "reads_globals"}
"""Functions that may read any attribute of a module, so that their calls are not replayed."""
